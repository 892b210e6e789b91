"""Sign-in, refresh and the file of tokens."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any, List

import pytest

from atelier import APIError, AsyncClient, Client, FileStore, MemoryStore, SignInRequired, TimeoutExpired, types
from atelier.tokens import TokenStore

from .conftest import QUICK, FaultServer, Received, Reply
from .test_requests import error


def tokens(number: int, lifetime: float = 3600) -> types.Tokens:
    return {
        "id_token": f"id{number}",
        "refresh_token": f"refresh{number}",
        "expires_at": int(time.time() + lifetime),
    }


class RefreshServer:
    """Rotates the refresh token with every refresh, as strictly as the service can."""

    def __init__(self, server: FaultServer, lost: int = 0, slow: float = 0.0) -> None:
        self.refreshes = 0
        self._lost = lost
        self._slow = slow
        self._lock = threading.Lock()
        server.answer = self.answer

    def answer(self, request: Received, number: int) -> Reply:
        if not request.path.endswith("/auth/token/refresh"):
            wanted = f"Bearer id{self.refreshes}"
            ok = request.headers.get("authorization") == wanted
            return Reply(body=b"{}") if ok else error(401, "TOKEN_INVALID")
        time.sleep(self._slow)
        with self._lock:
            given = json.loads(request.body)["refresh_token"]
            if self._lost > 0:
                self._lost -= 1
                return Reply(cut_after=-1)
            if given != f"refresh{self.refreshes}":
                return error(401, "TOKEN_INVALID")
            self.refreshes += 1
            return Reply(body=json.dumps(tokens(self.refreshes)).encode())


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_one_refresh_for_all_threads(server: FaultServer, tmp_path: Path, kind: str) -> None:
    store: TokenStore = MemoryStore() if kind == "memory" else FileStore(tmp_path / "t.json")
    store.save(tokens(0, lifetime=0))
    refresher = RefreshServer(server, slow=0.1)
    failures: List[BaseException] = []
    with Client(server.url, store=store, retry=QUICK) as client:

        def call() -> None:
            try:
                client.me.get()
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=call) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert refresher.refreshes == 1
    stored = store.load()
    assert stored is not None and stored["refresh_token"] == "refresh1"


def test_one_refresh_for_all_tasks(server: FaultServer) -> None:
    refresher = RefreshServer(server, slow=0.1)

    async def call() -> None:
        async with AsyncClient(server.url, store=MemoryStore(tokens(0, 0)), retry=QUICK) as client:
            await asyncio.gather(*(client.me.get() for _ in range(12)))

    asyncio.run(call())
    assert refresher.refreshes == 1


def test_one_refresh_for_several_processes(server: FaultServer, tmp_path: Path) -> None:
    # Each client has a store and locks of its own, as in another process.
    path = tmp_path / "t.json"
    FileStore(path).save(tokens(0, 0))
    refresher = RefreshServer(server, slow=0.1)
    failures: List[BaseException] = []

    def call() -> None:
        try:
            with Client(server.url, store=FileStore(path), retry=QUICK) as client:
                client.me.get()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert refresher.refreshes == 1
    assert os.listdir(tmp_path) == ["t.json"]


def test_refused_token_is_refreshed(server: FaultServer) -> None:
    refresher = RefreshServer(server)
    refresher.refreshes = 1
    store = MemoryStore({**tokens(0), "refresh_token": "refresh1"})
    with Client(server.url, store=store, retry=QUICK) as client:
        client.me.get()
    assert refresher.refreshes == 2


def test_lost_refresh_is_repeated(server: FaultServer) -> None:
    refresher = RefreshServer(server, lost=3)
    with Client(server.url, store=MemoryStore(tokens(0, 0)), retry=QUICK) as client:
        client.me.get()
    assert refresher.refreshes == 1


def test_cancelled_caller_does_not_lose_the_new_tokens(server: FaultServer, tmp_path: Path) -> None:
    store = FileStore(tmp_path / "t.json")
    store.save(tokens(0, 0))
    refresher = RefreshServer(server, slow=0.5)

    async def call() -> None:
        async with AsyncClient(server.url, store=store, retry=QUICK) as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.me.get(), 0.2)

    asyncio.run(call())
    assert refresher.refreshes == 1
    stored = store.load()
    assert stored is not None and stored["refresh_token"] == "refresh1"
    assert os.listdir(tmp_path) == ["t.json"]


def test_access_token_has_no_sign_in(server: FaultServer, faulty: Client) -> None:
    with pytest.raises(ValueError):
        faulty.sign_in()
    assert server.received == []


def test_outage_keeps_the_sign_in(server: FaultServer, tmp_path: Path) -> None:
    store = FileStore(tmp_path / "t.json")
    store.save(tokens(0, 0))
    server.script(error(503, "UPSTREAM_UNAVAILABLE", retryable=True, Retry_After="0"))
    with Client(server.url, store=store, retry=QUICK) as client, pytest.raises(APIError):
        client.me.get()
    RefreshServer(server)
    with Client(server.url, store=store, retry=QUICK) as client:
        client.me.get()
    assert os.listdir(tmp_path) == ["t.json"]


def test_ended_sign_in(server: FaultServer) -> None:
    server.script(error(401, "TOKEN_INVALID"))
    with Client(server.url, store=MemoryStore(tokens(0)), retry=QUICK) as client, pytest.raises(SignInRequired):
        client.me.get()


def test_access_token_is_not_refreshed(server: FaultServer, faulty: Client) -> None:
    server.script(error(401, "TOKEN_INVALID"))
    with pytest.raises(APIError) as caught:
        faulty.me.get()
    assert caught.value.code == "TOKEN_INVALID"
    assert len(server.received) == 1


def test_file_is_private_and_whole(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "deep" / "t.json")
    assert store.load() is None
    previous = os.umask(0)
    try:
        store.save(tokens(1))
    finally:
        os.umask(previous)
    assert stat.S_IMODE(os.stat(store.path).st_mode) == 0o600
    assert os.listdir(tmp_path / "deep") == ["t.json"]
    store.delete()
    assert store.load() is None
    (tmp_path / "deep" / "t.json").write_text("{")
    with pytest.raises(ValueError):
        store.load()


def test_lock_of_the_file(tmp_path: Path) -> None:
    first = FileStore(tmp_path / "t.json")
    second = FileStore(tmp_path / "t.json")
    assert first.try_lock()
    assert stat.S_IMODE(os.stat(first.path + ".lock").st_mode) == 0o600
    assert not second.try_lock()
    first.unlock()
    assert second.try_lock()

    old = time.time() - 31
    os.utime(first.path + ".lock", (old, old))
    assert first.try_lock()
    second.unlock()
    assert not second.try_lock(), "a holder that lost its lock has removed that of another"
    first.renew_lock()
    first.unlock()
    assert os.listdir(tmp_path) == []


DEVICE = {
    "device_code": "secret",
    "user_code": "BCDF-GHJK",
    "verification_url": "http://x/device",
    "expires_in": 600,
    "interval": 0,
}
RESULT = {"tokens": tokens(1), "device_id": "d", "user": {}, "accounts": [], "newly_joined_teams": []}


def test_sign_in(server: FaultServer) -> None:
    pending = error(428, "AUTHORIZATION_PENDING", retryable=True)
    slow = Reply(400, b'{"error": {"code": "SLOW_DOWN", "message": "", "details": {"interval": 1}}}')
    server.script(
        Reply(body=json.dumps(DEVICE).encode()),
        pending,
        Reply(cut_after=-1),
        error(503, Retry_After="0"),
        slow,
        pending,
        Reply(body=json.dumps(RESULT).encode()),
    )
    shown: List[Any] = []
    store = MemoryStore()
    began = time.monotonic()
    with Client(server.url, store=store, retry=QUICK) as client:
        result = client.sign_in(plugin_kind="tests", show=shown.append)
    assert time.monotonic() - began >= 2, "SLOW_DOWN raises the interval for all later polls"
    assert result["device_id"] == "d"
    assert shown[0]["user_code"] == "BCDF-GHJK"
    assert store.load() == RESULT["tokens"]
    assert json.loads(server.received[0].body) == {"plugin_kind": "tests"}
    assert all("secret" not in r.path for r in server.received)


def test_refused_sign_in(server: FaultServer) -> None:
    server.script(Reply(body=json.dumps(DEVICE).encode()), error(410, "DEVICE_CODE_EXPIRED"))
    with Client(server.url) as client, pytest.raises(SignInRequired):
        client.sign_in(show=lambda codes: None)


def test_expired_sign_in(server: FaultServer) -> None:
    codes = {**DEVICE, "expires_in": 1, "interval": 2}
    server.script(Reply(body=json.dumps(codes).encode()))
    with Client(server.url) as client, pytest.raises(TimeoutExpired):
        client.sign_in(show=lambda codes: None)
    assert len(server.received) == 1
