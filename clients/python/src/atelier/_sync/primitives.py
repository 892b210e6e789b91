"""The parts of the blocking client that differ from the asyncio one in more than words."""

from __future__ import annotations

import threading
from typing import Any, Callable, Iterator, TypeVar

from .._body import Body
from ..errors import ClientClosed

T = TypeVar("T")


def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Calls a function that blocks: here at once."""
    return function(*arguments)


def stream_body(body: Body) -> Iterator[bytes]:
    """Yields the body piece by piece."""
    sent = 0
    for piece in body.pieces():
        yield piece
        sent += len(piece)
        body.progress(sent)


class Shield:
    """Gives the result of work that must not be cancelled: here nothing is."""

    def run(self, result: T) -> T:
        return result


class Timer:
    """Sleeps, until another thread closes the client."""

    def __init__(self) -> None:
        self._closed = threading.Event()

    def sleep(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise ClientClosed("The client is closed.")

    def check(self) -> None:
        if self._closed.is_set():
            raise ClientClosed("The client is closed.")

    def close(self) -> None:
        self._closed.set()


class Lock:
    """A lock between threads. Its holder may take it again: `Retry.on_retry` may close the client."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
