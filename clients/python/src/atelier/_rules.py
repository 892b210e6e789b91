"""The rules that the blocking and the asyncio client share. Nothing here does input or output."""

from __future__ import annotations

import base64
import json
import random
import re
import uuid
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Union
from urllib.parse import quote, unquote, urlencode, urlsplit

import httpx

from ._types import LibraryRef, UploadRef
from .errors import APIError, AtelierError

PREFIX = "/api/v2"
RESUMABLE = "/uploads/resumable"
SINGLE_REQUEST_LIMIT = 8 * 1024 * 1024
"""Files of at least this size are uploaded in parts that can be resumed."""
PART_SIZE = 4 * 1024 * 1024
"""The size of a part. A part is lost if the service dies while it arrives."""
STREAM_SILENCE = 60.0
"""Seconds without a byte after which a stream of events counts as broken."""


@dataclass(frozen=True)
class Operation:
    """An operation of the interface."""

    method: str
    path: str
    query: Tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    selects_team: bool = False
    """Whether team_id selects the account that the call acts for."""
    repeatable: bool = False
    """Whether the call may be sent again when it is unknown if the service has received it."""
    has_key: bool = False
    """Whether an Idempotency-Key makes the call repeatable."""
    signed: bool = False
    """Whether the call needs a credential."""


@dataclass(frozen=True)
class Retry:
    """How often and how long a call is repeated. All times are seconds.

    The wait doubles with each attempt, and between half and all of it is waited, at random, so that
    clients that failed together do not return together. A longer `Retry-After` of the service counts
    instead.
    """

    attempts: int = 10
    """The most attempts of one call, the first included."""
    max_time: float = 180.0
    """The time after which no attempt begins."""
    min_wait: float = 0.2
    """The wait after the first attempt."""
    max_wait: float = 5.0
    """The longest wait that the client chooses itself."""
    on_retry: Optional[Callable[[Exception, float], None]] = None
    """Is told of each failed attempt before the wait."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("Retry.attempts must be at least 1")


class Attempts:
    """The attempts of one call, and the decision after each failure."""

    def __init__(self, retry: Retry, now: float) -> None:
        self.retry = retry
        self.failures = 0
        self.deadline = now + retry.max_time
        self.maybe_done = False
        """Whether an earlier attempt may have reached the service."""

    def reset(self, now: float) -> None:
        """Starts anew, because the call has made progress."""
        self.failures = 0
        self.deadline = now + self.retry.max_time

    def pause_after_network_error(
        self, error: Exception, repeatable: bool, now: float
    ) -> Optional[float]:
        """Seconds until the next attempt after an attempt without a response; None to give up."""
        if isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
            return None
        if not was_never_sent(error):
            self.maybe_done = True
            if not repeatable:
                return None
        return self.next_pause(error, now)

    def pause_after_response(
        self, error: APIError, repeatable: bool, now: float
    ) -> Optional[float]:
        """Seconds until the next attempt after an error response; None to give up."""
        refused = error.status in (408, 429) or (
            error.status == 503 and error.retry_after is not None
        )
        if error.status >= 500:
            self.maybe_done = True
        if refused or (error.status >= 500 and repeatable) or is_in_flight(error):
            return self.next_pause(error, now)
        return None

    def next_pause(self, failure: Exception, now: float) -> Optional[float]:
        """Seconds until the next attempt after one more failure; None to give up."""
        self.failures += 1
        if self.failures >= self.retry.attempts:
            return None
        longest = min(
            self.retry.max_wait, self.retry.min_wait * 2.0 ** min(self.failures - 1, 30)
        )
        pause = longest * random.uniform(0.5, 1.0)
        if isinstance(failure, APIError) and failure.retry_after is not None:
            pause = max(pause, failure.retry_after)
        if now + pause > self.deadline:
            return None
        if self.retry.on_retry is not None:
            self.retry.on_retry(failure, pause)
        return pause


def was_never_sent(error: Exception) -> bool:
    """Whether the service cannot have seen the request."""
    return isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))


def is_in_flight(error: APIError) -> bool:
    """Whether the first request with the same key is still being handled."""
    return (
        error.status == 409 and error.retryable and error.code == "IDEMPOTENCY_KEY_CONFLICT"
    )


def new_key() -> str:
    """A new Idempotency-Key."""
    return str(uuid.uuid4())


def check_base_url(url: str) -> str:
    """The URL of the service without a trailing slash, or ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"{url!r} is no URL of a service; expected such as https://atelier.example")
    url = url.rstrip("/")
    return url[: -len(PREFIX)] if url.endswith(PREFIX) else url


def build_path(operation: Operation, values: Mapping[str, Any], team: Optional[str]) -> str:
    """Path and query of a call. Values that are None or empty are absent."""
    path = re.sub(
        r"\{(\w+)\}", lambda match: _path_segment(match[1], values[match[1]]), operation.path
    )
    query = {name: values.get(name) for name in operation.query}
    if operation.selects_team and query.get("team_id") is None:
        query["team_id"] = team
    text = urlencode({k: _query_value(v) for k, v in query.items() if v not in (None, "")})
    return f"{path}?{text}" if text else path


def build_headers(operation: Operation, values: Mapping[str, Any]) -> Dict[str, str]:
    """The headers of a call. A call that can have an Idempotency-Key always gets one."""
    headers = {}
    for name, header in operation.headers.items():
        value = values.get(name)
        if value is None and header == "Idempotency-Key":
            value = new_key()
        if value is not None:
            headers[header] = str(value)
    return headers


def build_body(fields: Mapping[str, Any]) -> bytes:
    """A JSON body. Fields that are None are absent."""
    present = {k: v for k, v in fields.items() if v is not None}
    return json.dumps(present, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _path_segment(name: str, value: Any) -> str:
    text = quote(str(value), safe="")
    if text in ("", ".", ".."):
        raise ValueError(f"{name} must not be empty")
    return text


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(v) for v in value)
    return str(value)


def parse_retry_after(value: Optional[str], date: Optional[str] = None) -> Optional[float]:
    """The seconds of a Retry-After header, which may be a time (RFC 9110, section 10.2.3)."""
    if value is None:
        return None
    value = value.strip()
    if value.isdigit():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
        since = parsedate_to_datetime(date) if date else None
    except (TypeError, ValueError):
        return None
    if since is None:
        return None
    return max(0.0, (until - since).total_seconds())


def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> APIError:
    """The error of a response, also if something in between has answered."""
    retry_after = parse_retry_after(headers.get("retry-after"), headers.get("date"))
    try:
        error = json.loads(body)["error"]
        return APIError(
            status=status,
            code=str(error["code"]),
            message=str(error["message"]),
            retryable=bool(error.get("retryable")),
            details=error.get("details") if isinstance(error.get("details"), dict) else {},
            trace_id=str(error.get("trace_id") or headers.get("x-trace-id") or ""),
            retry_after=retry_after,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return APIError(
            status=status,
            code=f"HTTP_{status}",
            message=f"The server answered with status {status} and no error of the service.",
            retryable=status in (408, 429) or status >= 500,
            trace_id=headers.get("x-trace-id", ""),
            retry_after=retry_after,
        )


class UnreadableAnswer(AtelierError):
    """A successful response whose body is no JSON: it was cut or replaced on its way."""


def parse_answer(body: bytes) -> Any:
    """The record in the body of a successful response; None if it is empty."""
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError as error:
        raise UnreadableAnswer("The body of the response is no JSON.") from error


@dataclass(frozen=True)
class Event:
    """A server-sent event: `name`, and `data` as decoded from JSON."""

    name: str
    data: Any
    id: str = ""


class EventParser:
    """Takes the bytes of a stream of events in any pieces.

    The grammar is that of the HTML standard, section 9.2.6.
    """

    def __init__(self) -> None:
        self.last_id = ""
        self.retry: Optional[float] = None
        self._buffer = b""
        self._name = ""
        self._data: List[str] = []
        self._skip_newline = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yields the events that are complete with this chunk."""
        if self._skip_newline and chunk:
            chunk = chunk[1:] if chunk[:1] == b"\n" else chunk
            self._skip_newline = False
        self._buffer += chunk
        # A carriage return at the end may be half of a line's end.
        self._skip_newline = self._buffer.endswith(b"\r")
        lines = re.split(rb"\r\n|\n|\r", self._buffer)
        self._buffer = lines.pop()
        for line in lines:
            event = self._take(line.decode("utf-8", "replace"))
            if event is not None:
                yield event

    def _take(self, line: str) -> Optional[Event]:
        if line == "":
            return self._finish()
        key, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if key == "event":
            self._name = value
        elif key == "data":
            self._data.append(value)
        elif key == "id" and "\0" not in value:
            self.last_id = value
        elif key == "retry" and value.isdigit():
            self.retry = int(value) / 1000
        return None

    def _finish(self) -> Optional[Event]:
        name, data = self._name or "message", self._data
        self._name, self._data = "", []
        if not data:
            return None
        text = "\n".join(data)
        try:
            return Event(name, json.loads(text), self.last_id)
        except ValueError:
            return Event(name, text, self.last_id)


def parse_content_range(value: Optional[str]) -> Optional[Tuple[int, int]]:
    """Start and total size of a Content-Range header; None if it has no such form."""
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", value or "")
    return (int(match[1]), int(match[2])) if match else None


def upload_metadata(name: str) -> str:
    """The Upload-Metadata header of the tus protocol."""
    return "filename " + base64.b64encode(name.encode()).decode()


def resumable_path(location: Optional[str]) -> str:
    """The path of a resumable upload by its Location.

    Only its id is taken: the credential goes to the service's own URL, whatever the header says.
    """
    last = urlsplit(location or "").path.rstrip("/").rsplit("/", 1)[-1]
    if not last or last == "resumable":
        raise UnreadableAnswer("The service gave no Location for the upload.")
    return f"{RESUMABLE}/{quote(unquote(last), safe='')}"


def file_name(record: Mapping[str, Any]) -> str:
    """A safe name for the file of an output, from the end of its URL."""
    name = unquote(urlsplit(str(record.get("url") or "")).path.rsplit("/", 1)[-1])
    name = re.sub(r"[^\w.() -]", "_", name).lstrip(". ")
    return name[:150] or str(record.get("id", "file")).rsplit(":", 1)[-1]


def with_team(path: str, team: Optional[str]) -> str:
    """The path with the query parameter team_id, if there is a team."""
    if not team:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode({'team_id': team})}"


def upload_input(upload: Union[str, Mapping[str, Any]]) -> UploadRef:
    """The input of a run that refers to an upload, by its record or its id."""
    return {"kind": "UPLOAD_REF", "id": upload if isinstance(upload, str) else str(upload["id"])}


def library_input(output: Union[str, Mapping[str, Any]]) -> LibraryRef:
    """The input of a run that refers to a result of an earlier run, by its record or its id."""
    return {"kind": "LIBRARY_REF", "id": output if isinstance(output, str) else str(output["id"])}
