"""Sends requests: attempts, credentials, and errors."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional

import httpx

from .. import _operations as operations
from .._body import Body, json_body
from .._rules import (
    PREFIX,
    Attempts,
    Operation,
    Retry,
    UnreadableAnswer,
    build_body,
    build_headers,
    build_path,
    parse_answer,
    parse_error,
)
from .._types import Tokens
from ..errors import APIError, NetworkError, SignInRequired, TimeoutExpired
from ..tokens import TokenStore, is_fresh, read_tokens
from .primitives import AsyncLock, AsyncShield, AsyncTimer, in_thread, stream_body

REFRESH_TIMEOUT = 15.0
"""Seconds for one attempt of a refresh: the lock of the store must not become stale meanwhile."""


@dataclass
class Request:
    """A request, which is sent until it succeeds or there is no sense in it."""

    method: str
    url: str
    """The whole URL, or a path below /api/v2."""
    body: Optional[Body] = None
    headers: Dict[str, str] = field(default_factory=dict)
    repeatable: bool = False
    signed: bool = True
    stream: bool = False
    """Whether the caller reads the body of a successful response, and closes it."""
    retry: Optional[Retry] = None
    timeout: Optional[float] = None
    """Seconds of silence after which an attempt has failed."""
    before: Optional[Callable[[], None]] = None
    """Is called before each attempt."""


class AsyncSession:
    """The connections to one service, with one credential."""

    def __init__(
        self,
        base_url: str,
        credential: AsyncCredential,
        http: httpx.AsyncClient,
        retry: Retry,
        team_id: Optional[str],
    ) -> None:
        self.base_url = base_url
        self.credential = credential
        self.http = http
        self.retry = retry
        self.team_id = team_id
        self.timer = AsyncTimer()

    def for_team(self, team_id: str) -> AsyncSession:
        """A session for another account over the same connections and credential."""
        other = AsyncSession(self.base_url, self.credential, self.http, self.retry, team_id)
        other.timer = self.timer
        return other

    async def close(self) -> None:
        """Ends waiting calls and closes the connections.

        A refresh that is on its way is awaited: its answer may have the only valid refresh token.
        """
        self.timer.close()
        await self.credential.settle()
        await self.http.aclose()

    async def call(
        self,
        operation: Operation,
        values: Mapping[str, Any],
        body: Optional[Mapping[str, Any]] = None,
    ) -> Any:
        """Calls an operation and returns the record of the response; None if it has none."""
        request = self.prepare(operation, values)
        if body is not None:
            request.body = json_body(build_body(body))
        return parse_answer((await self.send(request)).content)

    def prepare(self, operation: Operation, values: Mapping[str, Any]) -> Request:
        """The request of an operation, without its body."""
        return Request(
            operation.method,
            build_path(operation, values, self.team_id),
            headers=build_headers(operation, values),
            repeatable=operation.repeatable,
            signed=operation.signed,
        )

    async def send(self, request: Request) -> httpx.Response:
        """Sends a request, again where that helps and does no harm.

        Returns a response with a status below 400. A DELETE whose first response was lost has
        succeeded if there is nothing to delete any more.
        """
        attempts = Attempts(request.retry or self.retry, time.monotonic())
        refreshed = False
        while True:
            self.timer.check()
            token = await self.credential.token(self) if request.signed else None
            try:
                response = await self._send_once(request, token)
            except (httpx.TransportError, UnreadableAnswer) as failure:
                self.timer.check()
                pause = attempts.pause_after_network_error(
                    failure, request.repeatable, time.monotonic()
                )
                if pause is None:
                    raise NetworkError(
                        f"{request.method} {_without_query(request.url)}: {failure or type(failure).__name__}"
                    ) from failure
                refreshed = False
                await self.timer.sleep(pause)
                continue
            if response.status_code < 400:
                return response
            error = parse_error(response.status_code, response.headers, response.content)
            if error.status == 401 and token and not refreshed and self.credential.can_refresh:
                refreshed = True
                await self.credential.refresh(self, token)
                continue
            refreshed = False
            if request.method == "DELETE" and error.status == 404 and attempts.maybe_done:
                return httpx.Response(204, request=response.request)
            pause = attempts.pause_after_response(error, request.repeatable, time.monotonic())
            if pause is None:
                raise error
            await self.timer.sleep(pause)

    async def _send_once(self, request: Request, token: Optional[str]) -> httpx.Response:
        if request.before is not None:
            await in_thread(request.before)
        headers = {"Accept": "application/json", **request.headers}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if request.body is not None:
            headers.setdefault("Content-Type", request.body.content_type)
            headers["Content-Length"] = str(request.body.length)
        timeout = self.http.timeout
        if request.timeout is not None:
            timeout = httpx.Timeout(request.timeout, connect=min(10.0, request.timeout), pool=None)
        built = self.http.build_request(
            request.method,
            request.url if "://" in request.url else self.base_url + PREFIX + request.url,
            headers=headers,
            content=None if request.body is None else stream_body(request.body),
            timeout=timeout,
        )
        # A service may keep its files elsewhere. Other requests are never redirected.
        redirects = request.method == "GET" and not request.signed
        response = await self.http.send(built, stream=True, follow_redirects=redirects)
        try:
            if request.stream and response.status_code < 400:
                return response
            await response.aread()
        except BaseException:
            await response.aclose()
            raise
        if response.status_code < 400 and "json" in response.headers.get("content-type", ""):
            parse_answer(response.content)
        return response


class AsyncCredential:
    """An access token, or the tokens of a sign-in, which are refreshed when they expire."""

    def __init__(self, token: Optional[str], store: Optional[TokenStore]) -> None:
        if token is not None and store is not None:
            raise ValueError("give an access token or a store of tokens, not both")
        self._token = token
        self._store = store
        self._tokens: Optional[Tokens] = None
        self._lock = AsyncLock()
        self._shield = AsyncShield()

    @property
    def can_refresh(self) -> bool:
        return self._store is not None

    async def token(self, session: AsyncSession) -> str:
        """The token to send; refreshes it first if it has expired."""
        if self._token is not None:
            return self._token
        if self._store is None:
            raise SignInRequired("Give the client an access token, or a store and sign in.")
        if self._tokens is None:
            self._tokens = await in_thread(self._store.load)
        if self._tokens is None:
            raise SignInRequired("Nobody is signed in. Call sign_in first.")
        if is_fresh(self._tokens, time.time()):
            return self._tokens["id_token"]
        return await self.refresh(session, self._tokens["id_token"])

    async def refresh(self, session: AsyncSession, stale: str) -> str:
        """Replaces the stale ID token, once for all who wait for it, and returns the new one.

        Cancelling a caller does not cancel the refresh: its answer would be lost.
        """
        return await self._shield.run(self._refresh(session, stale))

    async def settle(self) -> None:
        """Waits for a refresh that is on its way."""
        async with self._lock:
            pass

    async def _refresh(self, session: AsyncSession, stale: str) -> str:
        async with self._lock:
            current = self._tokens
            if current and current["id_token"] != stale and is_fresh(current, time.time()):
                return current["id_token"]
            self._tokens = await self._refresh_stored(session, stale)
            return self._tokens["id_token"]

    async def save(self, tokens: Tokens) -> None:
        """Keeps the tokens of a new sign-in."""
        assert self._store is not None
        await in_thread(self._store.save, tokens)
        self._tokens = tokens

    async def forget(self) -> None:
        """Forgets the sign-in."""
        self._tokens = None
        if self._store is not None:
            await in_thread(self._store.delete)

    async def _refresh_stored(self, session: AsyncSession, stale: str) -> Tokens:
        store = self._store
        assert store is not None
        deadline = time.monotonic() + session.retry.max_time
        while not await in_thread(store.try_lock):
            if time.monotonic() > deadline:
                raise TimeoutExpired("Another process holds the lock of the tokens.")
            await session.timer.sleep(0.1)
        try:
            # Another process may have refreshed since.
            stored = await in_thread(store.load)
            if stored is None:
                raise SignInRequired("The tokens are gone. Sign in again.")
            if stored["id_token"] != stale and is_fresh(stored, time.time()):
                return stored
            tokens = await self._request_tokens(session, store, stored)
            # Others may send the new token before the file has it: it is valid at once.
            self._tokens = tokens
            await in_thread(store.save, tokens)
            return tokens
        finally:
            await in_thread(store.unlock)

    async def _request_tokens(
        self, session: AsyncSession, store: TokenStore, stored: Tokens
    ) -> Tokens:
        # A refresh may be repeated: a replaced token works for one more minute and yields the same
        # successor, so that a lost response does not end the sign-in.
        request = session.prepare(operations.REFRESH_TOKEN, {})
        request.body = json_body(build_body({"refresh_token": stored["refresh_token"]}))
        request.timeout = REFRESH_TIMEOUT
        request.before = store.renew_lock
        try:
            response = await session.send(request)
        except APIError as error:
            if error.status == 401:
                raise SignInRequired("The service has ended the sign-in. Sign in again.") from error
            raise
        return read_tokens(parse_answer(response.content), "the response")


def _without_query(url: str) -> str:
    return url.split("?", 1)[0]
