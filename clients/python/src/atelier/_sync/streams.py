# Derived from _async by build/clients. Do not edit.
"""Streams of events that survive broken connections."""

from __future__ import annotations

import time
from typing import Any, Generator, Mapping, Optional

import httpx

from .._rules import STREAM_SILENCE, Attempts, Event, EventParser, Operation, Retry
from ..errors import NetworkError
from .session import Session

LAST_EVENTS = ("done", "deleted")
"""After these events the service closes a stream, and nothing follows."""

RECONNECT = "reconnect"
"""With this event a node of the service that stops ends a stream."""

MIN_STREAM_TIME = 1.0
"""A connection must have lasted this long before the client reconnects without a wait."""


class Events:
    """A stream of events. Iterate over it; it connects again where the connection breaks.

    Events are states: after a broken connection a state may come twice, or be skipped for a newer
    one.
    """

    def __init__(
        self, session: Session, operation: Operation, values: Mapping[str, Any]
    ) -> None:
        self._session = session
        self._operation = operation
        self._values = values
        self.last_id = ""
        """The id of the last event: the next connection continues after it."""

    def __iter__(self) -> Generator[Event, None, None]:
        attempts = Attempts(self._session.retry, time.monotonic())
        while True:
            connection = self.connect()
            try:
                for event in connection:
                    attempts.reset(time.monotonic())
                    yield event
                    if event.name in LAST_EVENTS and "board_id" not in self._operation.query:
                        return
            finally:
                connection.close()
            if self.ended:
                return
            if self.reconnects:
                attempts.reset(time.monotonic())
                continue
            failure = NetworkError("The stream of events breaks again and again.")
            pause = attempts.next_pause(failure, time.monotonic())
            if pause is None:
                raise failure
            self._session.timer.sleep(pause)

    ended = False
    """Whether the service has said that nothing follows."""

    reconnects = False
    """Whether the next connection may begin without a wait: a node of the service stops, others
    are there."""

    def connect(
        self, retry: Optional[Retry] = None, silence: float = STREAM_SILENCE
    ) -> Generator[Event, None, None]:
        """Yields the events of one connection, until it ends or breaks."""
        request = self._session.prepare(self._operation, self._values)
        request.headers["Accept"] = "text/event-stream"
        request.stream = True
        request.timeout = silence
        request.retry = retry
        if self.last_id:
            request.headers["Last-Event-ID"] = self.last_id
        self.reconnects = False
        response = self._session.send(request)
        opened = time.monotonic()
        try:
            if response.status_code == 204:
                self.ended = True
                return
            parser = EventParser()
            parser.last_id = self.last_id
            for chunk in response.iter_bytes():
                for event in parser.feed(chunk):
                    self.last_id = event.id
                    if event.name == RECONNECT:
                        self.reconnects = time.monotonic() - opened >= MIN_STREAM_TIME
                        return
                    yield event
        except httpx.TransportError:
            self._session.timer.check()
        finally:
            response.close()
