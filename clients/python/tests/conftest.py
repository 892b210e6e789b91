"""What the tests share: the service from the environment, and a small server with faults."""

from __future__ import annotations

import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

import pytest

from atelier import Client, Retry

QUICK = Retry(attempts=6, max_time=600, min_wait=0.01, max_wait=0.05)


class Received(NamedTuple):
    """A request that the faulty server has received."""

    method: str
    path: str
    headers: Dict[str, str]
    body: bytes


class Reply(NamedTuple):
    """A response, or a fault instead of one."""

    status: int = 200
    body: bytes = b""
    headers: Dict[str, str] = {}
    """With `Connection: close` the response has no length, and its end is the connection's."""
    cut_after: Optional[int] = None
    """The connection ends after this number of bytes of the body; -1 is before the status line."""
    later: bytes = b""
    """The rest of the body, which follows after `pause` seconds; only with `Connection: close`."""
    pause: float = 0


class FaultServer:
    """Answers with a function of the requests so far, and remembers them."""

    def __init__(self) -> None:
        self.received: List[Received] = []
        self.answer: Callable[[Received, int], Reply] = lambda request, number: Reply(404)
        """Gets the request and its number from 0."""
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                headers = {k.lower(): v for k, v in self.headers.items()}
                request = Received(self.command, self.path, headers, body)
                with outer._lock:
                    number = len(outer.received)
                    outer.received.append(request)
                reply = outer.answer(request, number)
                if reply.cut_after == -1:
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if "Connection" not in reply.headers:
                    self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                if self.command != "HEAD" and reply.status not in (204, 304):
                    self.wfile.write(reply.body[: reply.cut_after])
                    if reply.later:
                        self.wfile.flush()
                        time.sleep(reply.pause)
                        self.wfile.write(reply.later)
                if reply.cut_after is not None or "Connection" in reply.headers:
                    self.close_connection = True

            do_GET = do_POST = do_PATCH = do_HEAD = do_DELETE = do_PUT = handle_any

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def script(self, *replies: Reply) -> None:
        """Gives these replies in turn, and the last one from then on."""
        self.answer = lambda request, number: replies[min(number, len(replies) - 1)]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[FaultServer]:
    server = FaultServer()
    yield server
    server.close()


@pytest.fixture
def store() -> Iterator[FaultServer]:
    """A second server, such as the store of the files."""
    server = FaultServer()
    yield server
    server.close()


@pytest.fixture
def faulty(server: FaultServer) -> Iterator[Client]:
    """A client of the faulty server that does not wait long."""
    with Client(server.url, "atl_p_test", retry=QUICK) as client:
        yield client


@pytest.fixture(scope="session")
def service_url() -> str:
    return _from_environment("ATELIER_URL")


@pytest.fixture(scope="session")
def service_token() -> str:
    return _from_environment("ATELIER_TOKEN")


def _from_environment(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        line = f"{name} is not set: tests against a running service need ATELIER_URL and ATELIER_TOKEN"
        if os.environ.get("CI"):
            pytest.fail(line)
        pytest.skip(line)
    return value


@pytest.fixture
def client(service_url: str, service_token: str) -> Iterator[Client]:
    with Client(service_url, service_token) as client:
        yield client
