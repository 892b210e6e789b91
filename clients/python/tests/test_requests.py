"""Attempts, keys and errors, against a server with faults."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
import threading
import time
from typing import Any, List

import pytest

from atelier import (
    APIError,
    AsyncClient,
    Client,
    ClientClosed,
    MemoryStore,
    NetworkError,
    Retry,
    SignInRequired,
)
from atelier._rules import parse_retry_after

from .conftest import QUICK, FaultServer, Received, Reply

TOOL = Reply(body=b'{"id": "tool1", "tool_fields_hash": "v1:a"}', headers={"Content-Type": "application/json"})
CREATED = Reply(202, b'{"request_id": "r1"}', {"Content-Type": "application/json"})


def error(status: int, code: str = "X", retryable: bool = False, **headers: str) -> Reply:
    record = {"error": {"code": code, "message": "No.", "retryable": retryable, "details": {"a": 1}, "trace_id": "t"}}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(record).encode(), {"Content-Type": "application/json", **sent})


def creates(server: FaultServer) -> List[Received]:
    return [r for r in server.received if r.path == "/api/v2/generate"]


@pytest.mark.parametrize(
    "fault",
    [
        Reply(cut_after=-1),
        Reply(202, CREATED.body, CREATED.headers, cut_after=5),
        error(408),
        error(429, Retry_After="0"),
        error(503, Retry_After="0"),
        error(500),
        error(502),
        error(409, "IDEMPOTENCY_KEY_CONFLICT", retryable=True),
        Reply(202, b'{"request_id":', CREATED.headers),
    ],
    ids=["lost", "cut", "408", "429", "503", "500", "502", "in flight", "half a record"],
)
def test_create_is_repeated_with_its_key(server: FaultServer, faulty: Client, fault: Reply) -> None:
    server.script(TOOL, fault, fault, CREATED)
    assert faulty.runs.create("tool", {"seed": 1})["request_id"] == "r1"
    sent = creates(server)
    assert len(sent) == 3
    assert len({r.headers["idempotency-key"] for r in sent}) == 1
    assert len({r.body for r in sent}) == 1
    assert json.loads(sent[0].body)["tool_id"] == "tool1"


def test_each_create_has_a_key_of_its_own(server: FaultServer, faulty: Client) -> None:
    server.script(TOOL, CREATED)
    faulty.runs.create("tool")
    faulty.runs.create("tool")
    faulty.runs.create("tool", idempotency_key="mine")
    keys = [r.headers["idempotency-key"] for r in creates(server)]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_async_create_is_repeated_with_its_key(server: FaultServer) -> None:
    async def create() -> Any:
        async with AsyncClient(server.url, "t", retry=QUICK) as client:
            return await client.runs.create("tool")

    server.script(TOOL, Reply(cut_after=-1), error(500), CREATED)
    assert asyncio.run(create())["request_id"] == "r1"
    assert len({r.headers["idempotency-key"] for r in creates(server)}) == 1


@pytest.mark.parametrize("status", [400, 402, 403, 404, 409, 413, 422])
def test_refusals_are_not_repeated(server: FaultServer, faulty: Client, status: int) -> None:
    server.script(error(status, "SOME_CODE", X_Trace_Id="t"))
    with pytest.raises(APIError) as caught:
        faulty.me.get()
    found = caught.value
    assert (found.status, found.code, found.message, found.retryable) == (status, "SOME_CODE", "No.", False)
    assert (found.details, found.trace_id, found.retry_after) == ({"a": 1}, "t", None)
    assert len(server.received) == 1


def test_post_without_key_is_not_repeated_if_it_may_have_arrived(server: FaultServer, faulty: Client) -> None:
    server.script(Reply(cut_after=-1))
    with pytest.raises(NetworkError):
        faulty.boards.create(name="x")
    server.script(error(500))
    with pytest.raises(APIError):
        faulty.boards.create(name="x")
    assert len(server.received) == 2


def test_refused_connection_is_repeated_for_every_call() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with Client(f"http://127.0.0.1:{unused.getsockname()[1]}", "t", retry=QUICK) as client:
            began = time.monotonic()
            with pytest.raises(NetworkError):
                client.boards.create(name="x")
            assert time.monotonic() - began > 5 * 0.005


def test_attempts_are_limited(server: FaultServer, faulty: Client) -> None:
    server.script(error(503, Retry_After="0"))
    with pytest.raises(APIError) as caught:
        faulty.me.get()
    assert caught.value.retry_after == 0
    assert len(server.received) == QUICK.attempts


def test_time_is_limited(server: FaultServer) -> None:
    server.script(error(429, "RATE_LIMITED", Retry_After="30"))
    with Client(server.url, "t", retry=Retry(attempts=9, max_time=1)) as client:
        began = time.monotonic()
        with pytest.raises(APIError) as caught:
            client.me.get()
    assert caught.value.retry_after == 30
    assert time.monotonic() - began < 10
    assert len(server.received) == 1


def test_retry_after_is_waited_for(server: FaultServer, faulty: Client) -> None:
    server.script(error(429, Retry_After="1"), Reply(body=b"{}"))
    began = time.monotonic()
    faulty.me.get()
    assert time.monotonic() - began >= 1


def test_delete_has_succeeded_if_nothing_is_left(server: FaultServer, faulty: Client) -> None:
    server.script(Reply(cut_after=-1), error(404, "NOT_FOUND"))
    faulty.uploads.delete("u")
    server.script(error(404, "NOT_FOUND"))
    with pytest.raises(APIError):
        faulty.uploads.delete("u")


def test_stale_hash_is_read_again(server: FaultServer, faulty: Client) -> None:
    changed = TOOL._replace(body=b'{"id": "tool1", "tool_fields_hash": "v1:b"}')
    server.script(TOOL, error(409, "TOOL_SCHEMA_STALE"), changed, CREATED)
    faulty.runs.create("tool")
    assert [json.loads(r.body)["tool_fields_hash"] for r in creates(server)] == ["v1:a", "v1:b"]


def test_tool_that_changes_all_the_time(server: FaultServer, faulty: Client) -> None:
    server.script(TOOL, error(409, "TOOL_SCHEMA_STALE"), TOOL, error(409, "TOOL_SCHEMA_STALE"))
    with pytest.raises(APIError):
        faulty.runs.create("tool")
    assert len(server.received) == 4


def test_given_hash_is_kept(server: FaultServer, faulty: Client) -> None:
    server.script(error(409, "TOOL_SCHEMA_STALE"))
    with pytest.raises(APIError):
        faulty.runs.create("tool", tool_fields_hash="v1:mine")
    assert len(server.received) == 1


def test_error_of_something_in_between(server: FaultServer, faulty: Client) -> None:
    server.script(Reply(403, b"<html>blocked</html>"))
    with pytest.raises(APIError) as caught:
        faulty.me.get()
    assert caught.value.code == "HTTP_403"


def test_errors_survive_pickling(server: FaultServer, faulty: Client) -> None:
    server.script(error(402, "INSUFFICIENT_BALANCE"))
    with pytest.raises(APIError) as caught:
        faulty.me.get()
    assert pickle.loads(pickle.dumps(caught.value)).code == "INSUFFICIENT_BALANCE"


def test_closing_ends_a_call_that_waits(server: FaultServer) -> None:
    server.script(error(429, Retry_After="60"))
    client = Client(server.url, "t")
    failures: List[BaseException] = []

    def call() -> None:
        try:
            client.me.get()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=call)
    thread.start()
    while not server.received:
        time.sleep(0.01)
    time.sleep(0.1)
    client.close()
    thread.join(10)
    assert not thread.is_alive()
    assert isinstance(failures[0], ClientClosed)


def test_cancelling_ends_a_call_that_waits(server: FaultServer) -> None:
    async def call() -> None:
        async with AsyncClient(server.url, "t") as client:
            await asyncio.wait_for(client.me.get(), 0.5)

    server.script(error(429, Retry_After="60"))
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(call())


def test_closing_ends_tasks_that_wait(server: FaultServer) -> None:
    async def call() -> None:
        client = AsyncClient(server.url, "t")
        waiting = asyncio.ensure_future(client.me.get())
        while not server.received:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        await client.close()
        with pytest.raises(ClientClosed):
            await asyncio.wait_for(waiting, 10)

    server.script(error(429, Retry_After="60"))
    asyncio.run(call())


def test_retries_are_reported(server: FaultServer) -> None:
    told: List[Any] = []
    retry = Retry(min_wait=0.01, on_retry=lambda failure, wait: told.append((failure, wait)))
    server.script(error(503), Reply(cut_after=-1), Reply(body=b"{}"))
    with Client(server.url, "t", retry=retry) as client:
        client.me.get()
    assert [type(failure).__name__ for failure, _ in told] == ["APIError", "RemoteProtocolError"]
    assert all(wait > 0 for _, wait in told)


def test_team_is_sent_where_it_selects_the_account(server: FaultServer) -> None:
    server.script(Reply(body=b'{"data": []}'))
    with Client(server.url, "t", team_id="team1") as client:
        list(client.uploads.list())
        list(client.uploads.list(team_id="team2"))
        list(client.for_team("").uploads.list())
        list(client.companies.list())
        list(client.reports.usage())
    paths = [r.path for r in server.received]
    assert paths == [
        "/api/v2/uploads?team_id=team1",
        "/api/v2/uploads?team_id=team2",
        "/api/v2/uploads",
        "/api/v2/companies",
        "/api/v2/reports/usage",
    ]


def test_ids_cannot_change_the_path(server: FaultServer, faulty: Client) -> None:
    server.script(Reply(body=b"{}"))
    faulty.uploads.get("../me?x=1")
    assert server.received[0].path == "/api/v2/uploads/..%2Fme%3Fx%3D1"
    for bad in ("", "..", "."):
        with pytest.raises(ValueError):
            faulty.uploads.get(bad)


def test_pages(server: FaultServer, faulty: Client) -> None:
    def page(request: Received, number: int) -> Reply:
        if "cursor=next" in request.path:
            return Reply(body=b'{"data": [{"request_id": "3"}], "has_more": false, "next_cursor": null}')
        return Reply(
            body=b'{"data": [{"request_id": "1"}, {"request_id": "2"}], "has_more": true, '
            b'"next_cursor": "next"}'
        )

    server.answer = page
    assert [run["request_id"] for run in faulty.runs.list()] == ["1", "2", "3"]
    assert len(server.received) == 2
    assert next(iter(faulty.runs.list()))["request_id"] == "1"
    assert len(server.received) == 3


def test_no_credential(server: FaultServer) -> None:
    with Client(server.url) as client, pytest.raises(SignInRequired):
        client.me.get()
    assert server.received == []
    with pytest.raises(ValueError):
        Client(server.url, "t", store=MemoryStore())
    with pytest.raises(ValueError):
        Client("atelier.example")


def test_retry_after_header() -> None:
    assert parse_retry_after("7") == 7
    assert parse_retry_after("Wed, 21 Oct 2026 07:28:10 GMT", "Wed, 21 Oct 2026 07:28:00 GMT") == 10
    assert parse_retry_after("soon") is None
    assert parse_retry_after(None) is None
