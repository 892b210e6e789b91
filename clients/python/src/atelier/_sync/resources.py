# Derived from _async by build/clients. Do not edit.
"""The resources whose calls need more than one request, or files."""

from __future__ import annotations

import functools
import os
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union, cast

import httpx

from .. import _operations as operations
from .. import _types as types
from .._body import (
    FileLike,
    NewFile,
    Progress,
    form_body,
    json_body,
    split_files,
    without_files,
)
from .._rules import (
    STREAM_SILENCE,
    Attempts,
    Event,
    Operation,
    Retry,
    build_body,
    new_key,
    parse_answer,
)
from ..errors import APIError, NetworkError, TimeoutExpired
from . import calls
from .primitives import in_thread
from .session import Session, Request
from .streams import Events
from .transfers import download_file, upload_file

BREAKS_BEFORE_POLL = 2
"""Connections for events that may break in a row before the run is polled instead."""


class Me(calls.MeCalls):
    """The caller and their accounts."""

    def export(self, to: Union[str, os.PathLike[str]]) -> str:
        """Downloads all data about the person as a ZIP archive, and returns its path."""
        return _save(self._session, operations.EXPORT_ME, {}, to)


class Reports(calls.ReportsCalls):
    """Usage reports of a company."""

    def usage_csv(self, to: Union[str, os.PathLike[str]], **filters: Any) -> str:
        """Saves the whole usage report as CSV; the filters are those of `usage`."""
        return _save(
            self._session, operations.REPORT_USAGE, {**filters, "format": "csv"}, to
        )

    def runs_csv(self, to: Union[str, os.PathLike[str]], **filters: Any) -> str:
        """Saves the whole report of runs as CSV; the filters are those of `runs`."""
        return _save(self._session, operations.REPORT_RUNS, {**filters, "format": "csv"}, to)


class Uploads(calls.UploadsCalls):
    """Files that people upload as inputs of runs."""

    def create(
        self,
        file: FileLike,
        *,
        name: Optional[str] = None,
        resumable: Optional[bool] = None,
        team_id: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        progress: Optional[Progress] = None,
    ) -> types.Upload:
        """Uploads a file: a path, bytes, or a binary file that can seek.

        Files of 8 MiB and more, and all with `resumable=True`, are sent in parts; after a failure
        the upload goes on from what has arrived. The file is never in memory as a whole.
        """
        return upload_file(
            self._session,
            file,
            name=name,
            resumable=resumable,
            team_id=team_id,
            idempotency_key=idempotency_key,
            progress=progress,
        )


class Runs(calls.RunsCalls):
    """Runs of tools: prices, creation, status and results."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known: Dict[Tuple[str, str], types.ToolDetail] = {}

    def create(
        self,
        tool: str,
        inputs: Optional[Mapping[str, Any]] = None,
        *,
        num_results: Optional[int] = None,
        webhook_url: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        plugin: Optional[str] = None,
        retry_of: Optional[str] = None,
        tool_fields_hash: Optional[str] = None,
        team_id: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> types.GenerationCreated:
        """Starts a run of a tool, by its id or slug: once, however often the request must be sent.

        Inputs that are a `Path`, bytes or a binary file are sent along. Without `tool_fields_hash`
        the run uses the tool as it is now; with it, give the tool's id. A key that you give and
        store yourself keeps the promise over the end of your process too. `retry_of` is an earlier
        run of the same flow, whose finished steps with the same inputs are taken over.
        """
        values, sources = in_thread(split_files, inputs or {})
        key = idempotency_key or new_key()
        body: Dict[str, Any] = {
            "tool_id": tool,
            "tool_fields_hash": tool_fields_hash,
            "inputs": values,
            "num_results": num_results,
            "webhook_url": webhook_url,
            "metadata": metadata,
            "plugin": plugin,
            "retry_of": retry_of,
        }
        place = (tool, team_id or "")
        repeated = False
        while True:
            if tool_fields_hash is None:
                found = self._read_tool(place)
                body["tool_id"] = found["id"]
                body["tool_fields_hash"] = found["tool_fields_hash"]
            request = self._session.prepare(
                operations.CREATE_GENERATION, {"team_id": team_id, "idempotency_key": key}
            )
            if sources:
                request.body = form_body({k: v for k, v in body.items() if v is not None}, sources)
            else:
                request.body = json_body(build_body(body))
            try:
                answer = parse_answer((self._session.send(request)).content)
                return cast(types.GenerationCreated, answer)
            except APIError as error:
                # A refused request does not use up its key, so that the tool can be read again and
                # the run sent with the same key.
                self._known.pop(place, None)
                if error.code != "TOOL_SCHEMA_STALE" or tool_fields_hash is not None or repeated:
                    raise
                repeated = True

    def preview_cost(
        self,
        tool: str,
        inputs: Optional[Mapping[str, Any]] = None,
        *,
        num_results: Optional[int] = None,
        team_id: Optional[str] = None,
    ) -> types.CostPreview:
        """The price of a run, and whether the account can start it now. Files may be missing."""
        found = self._read_tool((tool, team_id or ""))
        answer = self._session.call(
            operations.PREVIEW_COST,
            {"team_id": team_id},
            body={
                "tool_id": found["id"],
                "tool_fields_hash": found["tool_fields_hash"],
                "inputs": without_files(inputs or {}),
                "num_results": num_results,
            },
        )
        return cast(types.CostPreview, answer)

    def _read_tool(self, place: Tuple[str, str]) -> types.ToolDetail:
        found = self._known.get(place)
        if found is None:
            answer = self._session.call(
                operations.GET_TOOL, {"tool_id": place[0], "team_id": place[1] or None}
            )
            found = self._known[place] = cast(types.ToolDetail, answer)
        return found

    def wait(
        self,
        request_id: str,
        *,
        team_id: Optional[str] = None,
        timeout: Optional[float] = None,
        on_event: Optional[Callable[[Event], None]] = None,
    ) -> types.Generation:
        """Waits until the run has ended, and returns its record, whatever its status is.

        Follows the events of the run, and polls where events do not come through. Goes on over
        restarts of the service. Raises TimeoutExpired after `timeout` seconds; the run goes on.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        events = self.events(request_id, team_id=team_id)
        breaks = 0
        while True:
            try:
                before = events.last_id
                record = self._follow(events, deadline, on_event)
                if record is not None:
                    return record
                if events.reconnects:
                    continue
                breaks = 1 if events.last_id != before else breaks + 1
                if events.ended:
                    breaks = BREAKS_BEFORE_POLL
            except (NetworkError, APIError) as failure:
                if isinstance(failure, APIError) and not failure.retryable:
                    raise
                breaks = BREAKS_BEFORE_POLL
            pause = 0.5
            if breaks >= BREAKS_BEFORE_POLL:
                run = self.get(request_id, team_id=team_id)
                if run["status"] != "pending":
                    return run
                pause = float(run["retry_after_seconds"])
            self._session.timer.sleep(_limit(pause, deadline))

    def _follow(
        self,
        events: Events,
        deadline: Optional[float],
        on_event: Optional[Callable[[Event], None]],
    ) -> Optional[types.Generation]:
        """Follows one connection. Returns the record if the run has ended."""
        connection = events.connect(
            retry=Retry(attempts=3, max_time=30.0),
            silence=max(0.1, _limit(STREAM_SILENCE, deadline)),
        )
        try:
            for event in connection:
                if on_event is not None:
                    on_event(event)
                if event.name == "done":
                    return cast(types.Generation, event.data)
                _limit(0.0, deadline)
        finally:
            connection.close()
        return None

    def download(
        self,
        run: types.Generation,
        folder: Union[str, os.PathLike[str]],
        *,
        progress: Optional[Progress] = None,
    ) -> List[str]:
        """Downloads all outputs of a run into a folder, and returns their paths.

        Each file appears when it is whole and its SHA-256 is right; a cut download goes on where
        it was cut. Outputs that have expired are left out.
        """
        in_thread(functools.partial(os.makedirs, folder, exist_ok=True))
        paths = []
        for output in run["outputs"]:
            if output["expired"]:
                continue

            def renew(wanted: str = output["id"]) -> Mapping[str, Any]:
                fresh = self.get(run["request_id"], team_id=run["team_id"])
                return next(o for o in fresh["outputs"] if o["id"] == wanted)

            paths.append(
                download_file(
                    self._session, output, folder, progress=progress, renew=renew
                )
            )
        return paths


def _save(
    session: Session,
    operation: Operation,
    values: Mapping[str, Any],
    to: Union[str, os.PathLike[str]],
) -> str:
    """Streams the response of an operation to a file that appears when it is whole."""
    request = session.prepare(operation, values)
    request.headers["Accept"] = "*/*"
    request.stream = True
    attempts = Attempts(session.retry, time.monotonic())
    file = in_thread(NewFile, to)
    try:
        while True:
            failure = _receive(session, request, file)
            if failure is None:
                break
            pause = attempts.next_pause(failure, time.monotonic())
            if pause is None:
                raise failure
            session.timer.sleep(pause)
        in_thread(file.keep)
    finally:
        file.discard()
    return file.path


def _receive(
    session: Session, request: Request, file: NewFile
) -> Optional[NetworkError]:
    """Writes one response to the file, from its beginning. Returns the failure if it was cut."""
    file.restart()
    response = session.send(request)
    try:
        for chunk in response.iter_bytes():
            in_thread(file.write, chunk)
    except httpx.TransportError as failure:
        session.timer.check()
        return NetworkError(f"The download was cut: {failure}")
    finally:
        response.close()
    return None


def _limit(seconds: float, deadline: Optional[float]) -> float:
    """The seconds, or those that are left until the deadline."""
    if deadline is None:
        return seconds
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutExpired("The run has not ended in time. It goes on.")
    return min(seconds, left)
