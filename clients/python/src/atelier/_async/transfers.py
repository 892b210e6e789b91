"""Uploads and downloads, which go on where they were cut."""

from __future__ import annotations

import hashlib
import os
import time
from typing import Any, Awaitable, Callable, Mapping, Optional, Union, cast

import httpx

from .. import _operations as operations
from .._body import Body, FileLike, NewFile, Part, Progress, Source
from .._rules import (
    PART_SIZE,
    RESUMABLE,
    SINGLE_REQUEST_LIMIT,
    Attempts,
    file_name,
    new_key,
    parse_answer,
    parse_content_range,
    resumable_path,
    upload_metadata,
    with_team,
)
from .._types import Upload
from ..errors import APIError, DownloadError, NetworkError
from .primitives import in_thread
from .session import AsyncSession, Request

TUS = {"Tus-Resumable": "1.0.0"}


async def upload_file(
    session: AsyncSession,
    file: FileLike,
    *,
    name: Optional[str],
    resumable: Optional[bool],
    team_id: Optional[str],
    idempotency_key: Optional[str],
    progress: Optional[Progress],
) -> Upload:
    """Uploads a file: in one request if it is small, otherwise in parts."""
    source = await in_thread(Source, file, name)
    if resumable is None:
        resumable = source.size >= SINGLE_REQUEST_LIMIT
    report = progress or (lambda sent, size: None)
    if resumable:
        upload = AsyncResumable(session, source, team_id, report)
        return await upload.run(idempotency_key or new_key())

    request = session.prepare(
        operations.CREATE_UPLOAD, {"name": source.name, "team_id": team_id}
    )
    request.body = Body(
        [Part(source)], "application/octet-stream", lambda sent: report(sent, source.size)
    )
    return cast(Upload, parse_answer((await session.send(request)).content))


class AsyncResumable:
    """An upload with the tus protocol 1.0.0."""

    def __init__(
        self,
        session: AsyncSession,
        source: Source,
        team_id: Optional[str],
        progress: Progress,
    ) -> None:
        self._session = session
        self._source = source
        self._team = session.team_id if team_id is None else team_id
        self._progress = progress
        self._path = ""
        self._offset = 0
        self._upload_id: Optional[str] = None

    async def run(self, key: str) -> Upload:
        """Sends the file and returns the record of the upload."""
        await self._create(key)
        attempts = Attempts(self._session.retry, time.monotonic())
        while self._upload_id is None:
            before = self._offset
            failure = await self._send_part()
            if failure is not None:
                pause = attempts.next_pause(failure, time.monotonic())
                if pause is None:
                    raise failure
                await self._session.timer.sleep(pause)
                if not await self._read_offset():
                    # The unfinished upload has expired, or its file was refused and the response
                    # was lost: it begins anew, under a new key.
                    await self._create(new_key())
            if self._offset > before:
                attempts.reset(time.monotonic())
                self._progress(self._offset, self._source.size)
        answer = await self._session.call(
            operations.GET_UPLOAD, {"upload_id": self._upload_id, "team_id": self._team}
        )
        return cast(Upload, answer)

    async def _create(self, key: str) -> None:
        response = await self._session.send(
            Request(
                "POST",
                with_team(RESUMABLE, self._team),
                body=Body([b""], "application/offset+octet-stream"),
                headers={
                    **TUS,
                    "Upload-Length": str(self._source.size),
                    "Upload-Metadata": upload_metadata(self._source.name),
                    "Idempotency-Key": key,
                },
                repeatable=True,
            )
        )
        self._path = with_team(resumable_path(response.headers.get("location")), self._team)
        self._offset = 0
        self._take_headers(response.headers)

    async def _read_offset(self) -> bool:
        """Asks how much has arrived; False if the service does not know the upload any more."""
        request = Request("HEAD", self._path, headers=dict(TUS), repeatable=True)
        try:
            response = await self._session.send(request)
        except APIError as error:
            if error.status in (404, 410):
                return False
            raise
        self._take_headers(response.headers)
        return True

    def _take_headers(self, headers: Mapping[str, str]) -> None:
        offset = headers.get("upload-offset", "")
        if offset.isdigit() and int(offset) <= self._source.size:
            self._offset = int(offset)
        self._upload_id = headers.get("upload-id") or None

    async def _send_part(self) -> Optional[Union[APIError, NetworkError]]:
        """Sends one part. Returns a failure after which to ask for the offset."""
        start = self._offset
        length = min(PART_SIZE, self._source.size - start)
        request = Request(
            "PATCH",
            self._path,
            body=Body(
                [Part(self._source, start, length)],
                "application/offset+octet-stream",
                lambda sent: self._progress(start + sent, self._source.size),
            ),
            headers={**TUS, "Upload-Offset": str(start)},
        )
        try:
            self._take_headers((await self._session.send(request)).headers)
        except NetworkError as failure:
            return failure
        except APIError as failure:
            if failure.status in (404, 409, 410, 423, 460) or failure.status >= 500:
                return failure
            raise
        return None


async def download_file(
    session: AsyncSession,
    record: Mapping[str, Any],
    to: Union[str, os.PathLike[str]],
    *,
    progress: Optional[Progress] = None,
    renew: Optional[Callable[[], Awaitable[Mapping[str, Any]]]] = None,
) -> str:
    """Downloads the file of a record, and returns its path.

    The file appears under its name when it is whole and its hash is right. `renew` reads the
    record again when its URL has expired.
    """
    if not record.get("url"):
        raise DownloadError("The file has expired; only its record is left.")
    file = await in_thread(_new_file, record, os.fspath(to))
    try:
        await AsyncDownload(session, record, progress, renew).run(file)
        await in_thread(file.keep)
    finally:
        file.discard()
    return file.path


def _new_file(record: Mapping[str, Any], path: str) -> NewFile:
    if os.path.isdir(path) or path.endswith(os.sep):
        path = os.path.join(path, unique_name(record))
    return NewFile(path)


class AsyncDownload:
    """The download of one file."""

    def __init__(
        self,
        session: AsyncSession,
        record: Mapping[str, Any],
        progress: Optional[Progress],
        renew: Optional[Callable[[], Awaitable[Mapping[str, Any]]]],
    ) -> None:
        self._session = session
        self._record = record
        self._progress = progress or (lambda received, size: None)
        self._renew = renew
        self._etag = ""
        self._size = 0
        self._rejected = False
        self._digest = hashlib.sha256()

    async def run(self, file: NewFile) -> None:
        """Writes the file, and raises DownloadError if it differs from its record."""
        attempts = Attempts(self._session.retry, time.monotonic())
        while True:
            before = self._size
            failure = await self._receive(file)
            if failure is None:
                problem = self._compare()
                if problem is None:
                    return
                self._reject(file, problem)
                continue
            if self._size > before:
                attempts.reset(time.monotonic())
            pause = attempts.next_pause(failure, time.monotonic())
            if pause is None:
                raise NetworkError(f"The download was cut: {failure}") from failure
            await self._session.timer.sleep(pause)

    async def _receive(self, file: NewFile) -> Optional[Exception]:
        """Receives what is missing. Returns the failure if the connection was cut."""
        headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if self._size:
            headers["Range"] = f"bytes={self._size}-"
            if self._etag:
                headers["If-Range"] = self._etag
        request = Request(
            "GET",
            str(self._record["url"]),
            headers=headers,
            repeatable=True,
            signed=False,
            stream=True,
        )
        try:
            response = await self._session.send(request)
        except APIError as error:
            if error.status == 416 and self._size:
                self._reject(file, "The file is shorter than its record says.")
                return httpx.ReadError("the range was refused")
            if error.status in (403, 404) and self._renew is not None:
                self._record = await self._renew()
                self._renew = None
                return httpx.ReadError("the URL has expired")
            raise
        try:
            part = parse_content_range(response.headers.get("content-range"))
            if response.status_code != 206 or part is None or part[0] != self._size:
                self._restart(file)
                if response.status_code == 206:
                    return httpx.ReadError("another range came")
            etag = response.headers.get("etag", "")
            self._etag = "" if etag.startswith("W/") else etag
            async for chunk in response.aiter_bytes():
                await in_thread(file.write, chunk)
                self._digest.update(chunk)
                self._size += len(chunk)
                self._progress(self._size, int(self._record.get("size_bytes") or 0))
        except httpx.TransportError as failure:
            self._session.timer.check()
            return failure
        finally:
            await response.aclose()
        if self._size < int(self._record.get("size_bytes") or 0):
            # A response without a length can end early and look whole.
            return httpx.ReadError("the response ended early")
        return None

    def _reject(self, file: NewFile, problem: str) -> None:
        """Starts anew with a file that is wrong, once: it may have been damaged on its way."""
        if self._rejected:
            raise DownloadError(problem)
        self._rejected = True
        self._restart(file)

    def _restart(self, file: NewFile) -> None:
        file.restart()
        self._size = 0
        self._digest = hashlib.sha256()

    def _compare(self) -> Optional[str]:
        size = self._record.get("size_bytes")
        if size is not None and size != self._size:
            return f"The file has {self._size} bytes, and its record says {size}."
        digest = self._record.get("sha256")
        if digest and digest != self._digest.hexdigest():
            return "The SHA-256 of the file differs from its record."
        return None


def unique_name(record: Mapping[str, Any]) -> str:
    """A name that no other result has: sunset-0b5f8a4e.png."""
    stem, suffix = os.path.splitext(file_name(record))
    mark = str(record.get("id", "")).rsplit(":", 1)[-1][:8]
    return f"{stem}-{mark}{suffix}" if mark else stem + suffix
