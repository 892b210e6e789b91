"""The parts of the asyncio client that differ from the blocking one in more than words."""

from __future__ import annotations

import asyncio
import functools
from typing import Any, AsyncIterator, Callable, Coroutine, Optional, Set, TypeVar

from .._body import Body
from ..errors import ClientClosed

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Calls a function that blocks."""
    call = functools.partial(function, *arguments)
    return await asyncio.get_running_loop().run_in_executor(None, call)


async def stream_body(body: Body) -> AsyncIterator[bytes]:
    """Yields the body piece by piece; files are read in a thread."""
    pieces = body.pieces()
    sent = 0
    while True:
        piece = await in_thread(next, pieces, None)
        if piece is None:
            return
        yield piece
        sent += len(piece)
        body.progress(sent)


class AsyncShield:
    """Runs work that goes on to its end if the caller is cancelled."""

    def __init__(self) -> None:
        self._running: Set[asyncio.Task[Any]] = set()
        """The loop itself keeps no task alive."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._end)
        return await asyncio.shield(task)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # a caller that was cancelled does not ask for it


class AsyncTimer:
    """Sleeps, until the client is closed."""

    def __init__(self) -> None:
        self._closed = False
        self._sleepers: Set[asyncio.Future[None]] = set()

    async def sleep(self, seconds: float) -> None:
        self.check()
        wake = asyncio.get_running_loop().create_future()
        self._sleepers.add(wake)
        try:
            await asyncio.wait([wake], timeout=seconds)
        finally:
            self._sleepers.discard(wake)
        self.check()

    def check(self) -> None:
        if self._closed:
            raise ClientClosed("The client is closed.")

    def close(self) -> None:
        self._closed = True
        for wake in self._sleepers:
            if not wake.done():
                wake.set_result(None)


class AsyncLock:
    """A lock that is made in the loop that uses it: Python 3.9 binds locks to a loop."""

    def __init__(self) -> None:
        self._lock: Optional[asyncio.Lock] = None

    async def __aenter__(self) -> None:
        if self._lock is None:
            self._lock = asyncio.Lock()
        await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release()
