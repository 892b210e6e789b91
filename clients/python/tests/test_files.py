"""Uploads, waiting and downloads, against a server with faults."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import os
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from atelier import APIError, AsyncClient, Client, DownloadError, Event, Retry, TimeoutExpired
from atelier._rules import PART_SIZE, EventParser, file_name

from .conftest import QUICK, FaultServer, Received, Reply
from .test_requests import error

CONTENT = os.urandom(PART_SIZE * 2 + 12345)
FILE = os.urandom(300_000)


class TusServer:
    """Takes resumable uploads, and fails by a plan: the faults of the PATCH requests in turn."""

    def __init__(self, server: FaultServer, faults: List[str]) -> None:
        self.received = b""
        self.created: List[Tuple[str, str]] = []
        self.length = 0
        self._faults = faults
        self._lock = threading.Lock()
        server.answer = self.answer

    def answer(self, request: Received, number: int) -> Reply:
        with self._lock:
            if request.method == "GET":
                return Reply(body=b'{"id": "upload1"}')
            assert request.headers["tus-resumable"] == "1.0.0"
            if request.method == "POST":
                return self.create(request)
            if request.method == "HEAD":
                return Reply(200, headers=self.state())
            return self.append(request)

    def create(self, request: Received) -> Reply:
        self.created.append((request.headers["idempotency-key"], request.headers["upload-metadata"]))
        self.length = int(request.headers["upload-length"])
        self.received = b""
        where = "https://elsewhere.example/api/v2/uploads/resumable/abc?team_id=x"
        return Reply(201, headers={"Location": where, "Upload-Offset": "0"})

    def append(self, request: Received) -> Reply:
        assert request.path == "/api/v2/uploads/resumable/abc"
        assert len(request.body) <= PART_SIZE
        fault = self._faults.pop(0) if self._faults else ""
        if fault == "gone":
            return error(404, "NOT_FOUND")
        if int(request.headers["upload-offset"]) != len(self.received):
            return error(409, "UPLOAD_OFFSET_CONFLICT")
        kept = request.body[: len(request.body) // 2] if fault == "half" else request.body
        if fault != "killed":
            self.received += kept
        if fault in ("half", "lost", "killed"):
            return Reply(cut_after=-1)
        if fault == "locked":
            self.received = self.received[: -len(kept)]
            return error(423, "LOCKED")
        if fault == "refused":
            return error(415, "UNSUPPORTED_MEDIA_TYPE")
        return Reply(204, headers=self.state())

    def state(self) -> Dict[str, str]:
        headers = {"Upload-Offset": str(len(self.received))}
        if len(self.received) == self.length:
            headers["Upload-Id"] = "upload1"
        return headers


@pytest.mark.parametrize(
    "faults",
    [[], ["half", "lost", "killed", "locked", "half"], ["", "", "lost"]],
    ids=["none", "many", "last response lost"],
)
def test_resumable_upload(server: FaultServer, faulty: Client, tmp_path: Path, faults: List[str]) -> None:
    path = tmp_path / "noise.wav"
    path.write_bytes(CONTENT)
    tus = TusServer(server, list(faults))
    steps: List[Tuple[int, int]] = []
    upload = faulty.uploads.create(path, progress=lambda sent, size: steps.append((sent, size)))
    assert upload["id"] == "upload1"
    assert tus.received == CONTENT
    assert len(tus.created) == 1
    assert base64.b64decode(tus.created[0][1].split()[1]) == b"noise.wav"
    assert steps[-1] == (len(CONTENT), len(CONTENT))


def test_async_resumable_upload(server: FaultServer) -> None:
    async def upload() -> Any:
        async with AsyncClient(server.url, "t", retry=QUICK) as client:
            return await client.uploads.create(io.BytesIO(CONTENT), name="a.wav", resumable=True)

    tus = TusServer(server, ["half", "lost"])
    assert asyncio.run(upload())["id"] == "upload1"
    assert tus.received == CONTENT


def test_expired_upload_begins_anew(server: FaultServer, faulty: Client) -> None:
    tus = TusServer(server, ["", "gone"])
    answer = server.answer
    gone: List[bool] = []

    def forget(request: Received, number: int) -> Reply:
        if request.method == "HEAD" and not gone:
            gone.append(True)
            return Reply(404)
        return answer(request, number)

    server.answer = forget
    faulty.uploads.create(CONTENT)
    assert tus.received == CONTENT
    assert len({key for key, _ in tus.created}) == 2


def test_refused_file(server: FaultServer, faulty: Client) -> None:
    TusServer(server, ["refused"])
    with pytest.raises(APIError) as caught:
        faulty.uploads.create(CONTENT)
    assert caught.value.code == "UNSUPPORTED_MEDIA_TYPE"


def test_small_upload_is_one_request(server: FaultServer, faulty: Client) -> None:
    server.script(Reply(cut_after=-1), Reply(201, b'{"id": "u"}'))
    assert faulty.uploads.create(b"12345", name="ä b.png")["id"] == "u"
    assert [r.body for r in server.received] == [b"12345", b"12345"]
    assert server.received[0].path == "/api/v2/uploads?name=%C3%A4+b.png"


def test_form_with_files(server: FaultServer, faulty: Client) -> None:
    server.script(Reply(cut_after=-1), Reply(202, b'{"request_id": "r"}'))
    inputs = {"pictures": [b"bytes of a picture", io.BytesIO(b"and of another")], "prompt": "a/path.png"}
    faulty.runs.create("tool", inputs, tool_fields_hash="v1:a")
    form = server.received[0].body
    assert form == server.received[1].body
    assert b"\r\n\r\nbytes of a picture\r\n" in form and b"\r\n\r\nand of another\r\n" in form
    payload = json.loads(form.split(b"\r\n\r\n")[1].split(b"\r\n")[0])
    assert payload["inputs"] == {
        "pictures": [{"kind": "MULTIPART", "file_index": 0}, {"kind": "MULTIPART", "file_index": 1}],
        "prompt": "a/path.png",
    }


def media(number_of_cuts: int, content: bytes = FILE, ranges: bool = True, length: bool = True) -> Any:
    """Serves a file; the first responses are cut in the middle."""

    def answer(request: Received, number: int) -> Reply:
        assert "authorization" not in request.headers, "signed URLs need no credential"
        start = 0
        if ranges and "range" in request.headers:
            assert request.headers["if-range"] == '"e"'
            start = int(request.headers["range"][len("bytes=") : -1])
        part = content[start:]
        if start and not part:
            return error(416, "RANGE_NOT_SATISFIABLE")
        headers = {"ETag": '"e"'} if length else {"ETag": '"e"', "Connection": "close"}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        cut = len(part) // 2 if number < number_of_cuts else None
        return Reply(206 if start else 200, part, headers, cut_after=cut)

    return answer


def output(server: FaultServer, **changes: Any) -> Dict[str, Any]:
    record = {
        "id": "run:0b5f8a4e-6c1d",
        "url": server.url + "/media/a/sunset.png?s=1",
        "size_bytes": len(FILE),
        "sha256": hashlib.sha256(FILE).hexdigest(),
    }
    return {**record, **changes}


@pytest.mark.parametrize("ranges", [True, False])
def test_cut_download_goes_on(server: FaultServer, faulty: Client, tmp_path: Path, ranges: bool) -> None:
    server.answer = media(3, ranges=ranges)
    path = faulty.download(output(server), tmp_path)
    assert path == str(tmp_path / "sunset-0b5f8a4e.png")
    assert Path(path).read_bytes() == FILE
    assert os.listdir(tmp_path) == ["sunset-0b5f8a4e.png"]
    assert len(server.received) == 4
    assert "range" in server.received[1].headers


def test_download_that_ends_early_goes_on(server: FaultServer, faulty: Client, tmp_path: Path) -> None:
    server.answer = media(3, length=False)
    assert Path(faulty.download(output(server), tmp_path)).read_bytes() == FILE
    assert len(server.received) == 4


def test_async_download(server: FaultServer, tmp_path: Path) -> None:
    async def download() -> str:
        async with AsyncClient(server.url, "t", retry=QUICK) as client:
            return await client.download(output(server), tmp_path / "x.png")

    server.answer = media(2)
    assert Path(asyncio.run(download())).read_bytes() == FILE


def test_redirect_to_the_store(server: FaultServer, store: FaultServer, tmp_path: Path) -> None:
    """A service may send readers to its store, which never gets the credential, not even that of
    an HTTP client of the caller."""
    store.answer = media(1)
    there = {"Location": store.url + "/bucket/a.png?X-Amz-Signature=1", "Cache-Control": "no-store"}
    server.script(Reply(307, headers=there))

    with Client(server.url, "atl_p_secret", retry=QUICK) as client:
        path = client.download(output(server), tmp_path / "sync.png")
    assert Path(path).read_bytes() == FILE

    async def download() -> str:
        async with AsyncClient(server.url, "atl_p_secret", retry=QUICK) as client:
            return await client.download(output(server), tmp_path / "async.png")

    assert Path(asyncio.run(download())).read_bytes() == FILE
    assert len(store.received) == 3, "the first download was cut once"
    for request in server.received + store.received:
        assert "authorization" not in request.headers
        assert not any("atl_p_secret" in value for value in request.headers.values())


def test_calls_follow_no_redirect(server: FaultServer, store: FaultServer, faulty: Client) -> None:
    server.script(Reply(307, headers={"Location": store.url + "/api/v2/me"}))
    faulty.me.get()
    assert len(server.received) == 1
    assert store.received == []


@pytest.mark.parametrize(
    "changes", [{"sha256": "0" * 64}, {"size_bytes": 5}, {"size_bytes": len(FILE) + 1}]
)
def test_wrong_file_never_appears(
    server: FaultServer, faulty: Client, tmp_path: Path, changes: Dict[str, Any]
) -> None:
    server.answer = media(0)
    with pytest.raises(DownloadError):
        faulty.download(output(server, **changes), tmp_path / "x.png")
    assert os.listdir(tmp_path) == []
    assert 2 <= len(server.received) <= 4


def test_damage_on_the_way_is_repaired(server: FaultServer, faulty: Client, tmp_path: Path) -> None:
    good = media(0)
    server.answer = lambda request, number: (
        Reply(200, FILE[:-1] + b"x") if number == 0 and FILE[-1:] != b"x" else good(request, number)
    )
    faulty.download(output(server), tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes() == FILE


def test_expired_url_is_renewed(server: FaultServer, faulty: Client, tmp_path: Path) -> None:
    good = media(0)
    fresh = {"outputs": [output(server, url=server.url + "/media/fresh.png", expired=False)]}

    def answer(request: Received, number: int) -> Reply:
        if request.path.startswith("/api/"):
            return Reply(body=json.dumps(fresh).encode())
        return good(request, number) if "fresh" in request.path else error(403, "ADDRESS_EXPIRED")

    server.answer = answer
    run: Any = {"request_id": "r", "team_id": None, "outputs": [output(server, expired=False)]}
    assert len(faulty.runs.download(run, tmp_path / "new")) == 1


def test_cut_export_begins_anew(server: FaultServer, faulty: Client, tmp_path: Path) -> None:
    server.script(Reply(200, FILE, cut_after=1000), error(503, Retry_After="0"), Reply(200, FILE[:-1]))
    assert faulty.me.export(tmp_path / "new" / "me.zip") == str(tmp_path / "new" / "me.zip")
    assert (tmp_path / "new" / "me.zip").read_bytes() == FILE[:-1]
    server.script(error(403, "FORBIDDEN"))
    with pytest.raises(APIError):
        faulty.reports.usage_csv(tmp_path / "new" / "usage.csv")
    assert os.listdir(tmp_path / "new") == ["me.zip"]


def test_names_of_files_stay_in_their_folder() -> None:
    assert file_name({"url": "http://x/media/a/..%2F..%2Fetc%2Fpasswd"}) == "_.._etc_passwd"
    assert file_name({"url": "http://x/media/a/.hidden"}) == "hidden"
    assert file_name({"url": None, "id": "a:b"}) == "b"


def test_event_parser_takes_any_pieces() -> None:
    text = (
        b': ping\r\n\r\nid: 1\r\nevent: status\r\ndata: {"a":\r\ndata: 1}\r\n\r\n'
        b'id: 2\ndata: [2]\n\nevent: done\rdata: "x"\r\rdata: cut'
    )
    wanted = [Event("status", {"a": 1}, "1"), Event("message", [2], "2"), Event("done", "x", "2")]
    for size in range(1, len(text)):
        parser = EventParser()
        found: List[Event] = []
        for start in range(0, len(text), size):
            found += parser.feed(text[start : start + size])
        assert found == wanted, size


def events(*lines: str) -> Reply:
    return Reply(200, "".join(lines).encode(), {"Content-Type": "text/event-stream"})


STATUS = 'id: 1\nevent: status\ndata: {"status": "pending"}\n\n'
DONE = 'id: 2\nevent: done\ndata: {"status": "succeeded"}\n\n'
PENDING = Reply(body=b'{"status": "pending", "retry_after_seconds": 0}')
SUCCEEDED = Reply(body=b'{"status": "succeeded"}')


def test_wait_connects_again(server: FaultServer, faulty: Client) -> None:
    server.script(events(STATUS), events(DONE))
    seen: List[str] = []
    run = faulty.runs.wait("r", on_event=lambda event: seen.append(event.name))
    assert run["status"] == "succeeded"
    assert seen == ["status", "done"]
    assert "last-event-id" not in server.received[0].headers
    assert server.received[1].headers["last-event-id"] == "1"
    assert all(r.path.endswith("/events") for r in server.received)


def test_wait_reads_the_record_if_all_events_came(server: FaultServer, faulty: Client) -> None:
    server.script(events(STATUS), Reply(204), SUCCEEDED)
    assert faulty.runs.wait("r")["status"] == "succeeded"


def test_wait_polls_without_events(server: FaultServer, faulty: Client) -> None:
    polls: List[int] = []

    def answer(request: Received, number: int) -> Reply:
        if request.path.endswith("/events"):
            return error(503, "UPSTREAM_UNAVAILABLE", retryable=True, Retry_After="0")
        polls.append(number)
        return SUCCEEDED if len(polls) == 3 else PENDING

    server.answer = answer
    assert faulty.runs.wait("r")["status"] == "succeeded"
    assert len(polls) == 3


def test_wait_has_a_limit(server: FaultServer, faulty: Client) -> None:
    server.answer = lambda request, number: events(STATUS) if request.path.endswith("/events") else PENDING
    with pytest.raises(TimeoutExpired):
        faulty.runs.wait("r", timeout=1.2)


def test_wait_for_an_unknown_run(server: FaultServer, faulty: Client) -> None:
    server.script(error(404, "NOT_FOUND"))
    with pytest.raises(APIError):
        faulty.runs.wait("r")
    assert len(server.received) == 1


def test_async_wait(server: FaultServer) -> None:
    async def wait() -> Any:
        async with AsyncClient(server.url, "t", retry=QUICK) as client:
            return await client.runs.wait("r")

    server.script(Reply(cut_after=-1), events(STATUS), events(DONE))
    assert asyncio.run(wait())["status"] == "succeeded"


def test_stream_of_an_account_connects_again(server: FaultServer, faulty: Client) -> None:
    server.script(events(STATUS), events(DONE))
    stream = iter(faulty.events.stream())
    assert [next(stream).name for _ in range(3)] == ["status", "done", "done"]
    assert server.received[2].headers["last-event-id"] == "2"


RECONNECT = b'retry: 100\n\nevent: reconnect\ndata: {"reason": "This node of the service stops."}\n\n'
"""With this a node that stops ends its streams."""


def stopping(*lines: str, after: float) -> Reply:
    """A stream of a node that stops after some seconds."""
    headers = {"Content-Type": "text/event-stream", "Connection": "close"}
    return Reply(200, "".join(lines).encode(), headers, later=RECONNECT, pause=after)


def test_stream_that_is_told_to_reconnect(server: FaultServer) -> None:
    """It goes to the next node at once, after the last event, and callers do not see it. The waits
    of this client are so long that a test with one of them would not end."""
    slow = Retry(attempts=6, max_time=6000, min_wait=1000, max_wait=1000)
    server.script(stopping(STATUS, after=4), events(DONE))
    with Client(server.url, "t", retry=slow) as client:
        seen: List[str] = []
        run = client.runs.wait("r", on_event=lambda event: seen.append(event.name))
        assert run["status"] == "succeeded"
        assert seen == ["status", "done"]
    assert [r.headers.get("last-event-id") for r in server.received] == [None, "1"]
    assert all(r.path.endswith("/events") for r in server.received), "the run was polled"

    async def follow() -> List[str]:
        async with AsyncClient(server.url, "t", retry=slow) as client:
            names: List[str] = []
            async for event in client.events.stream():
                names.append(event.name)
                if event.name == "done":
                    return names
        return names

    server.received.clear()
    assert asyncio.run(follow()) == ["status", "done"]
    assert [r.headers.get("last-event-id") for r in server.received] == [None, "1"]


def test_stream_that_is_told_to_reconnect_at_once_waits(server: FaultServer) -> None:
    """A service that ends every stream right away is not asked without a pause."""
    server.script(stopping(STATUS, after=0), stopping(STATUS, after=0), events(DONE))
    waits = Retry(attempts=6, max_time=600, min_wait=0.2, max_wait=0.2)
    with Client(server.url, "t", retry=waits) as client:
        began = time.monotonic()
        names = [event.name for event in client.runs.events("r")]
        assert names == ["status", "status", "done"]
        assert time.monotonic() - began >= 0.2
