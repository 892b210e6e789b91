"""The client."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, Type, Union, cast

import httpx

from .. import _operations as operations
from .. import _types as types
from .._body import Progress, json_body
from .._rules import Event, Retry, build_body, check_base_url, parse_answer
from ..errors import APIError, NetworkError, RunFailed, SignInRequired, TimeoutExpired
from ..tokens import MemoryStore, TokenStore
from . import calls, resources
from .session import AsyncCredential, AsyncSession, Request
from .transfers import download_file


class AsyncClient:
    """A client of one Atelier service, for one person.

    Give it an access token, or a store for the tokens of a sign-in (see `sign_in`). `team_id` is the
    team whose account the calls act for; without one it is the personal account.
    """

    def __init__(
        self,
        base_url: str,
        token: Optional[str] = None,
        *,
        store: Optional[TokenStore] = None,
        team_id: Optional[str] = None,
        retry: Optional[Retry] = None,
        timeout: float = 60.0,
        http: Optional[httpx.AsyncClient] = None,
    ) -> None:
        """`timeout` is the seconds of silence after which an attempt has failed. `http` replaces the
        HTTP client, for proxies and certificates of your own; it is closed with this client.
        """
        if token is None and store is None:
            store = MemoryStore()
        if http is None:
            http = httpx.AsyncClient(timeout=httpx.Timeout(timeout, connect=10.0, pool=None))
        self._use(
            AsyncSession(
                check_base_url(base_url), AsyncCredential(token, store), http, retry or Retry(), team_id
            )
        )

    def _use(self, session: AsyncSession) -> None:
        self._session = session
        self.auth = calls.AsyncAuth(session)
        self.me = resources.AsyncMe(session)
        self.access_tokens = calls.AsyncAccessTokens(session)
        self.companies = calls.AsyncCompanies(session)
        self.teams = calls.AsyncTeams(session)
        self.invitations = calls.AsyncInvitations(session)
        self.tools = calls.AsyncTools(session)
        self.runs = resources.AsyncRuns(session)
        self.webhooks = calls.AsyncWebhooks(session)
        self.uploads = resources.AsyncUploads(session)
        self.library = calls.AsyncLibrary(session)
        self.flows = calls.AsyncFlows(session)
        self.boards = calls.AsyncBoards(session)
        self.events = calls.AsyncEventStreams(session)
        self.reports = resources.AsyncReports(session)
        self.operator = calls.AsyncOperator(session)
        self.service = calls.AsyncService(session)

    def for_team(self, team_id: str) -> AsyncClient:
        """A client that acts for a team, over the same connections and sign-in.

        "" is the personal account. Closing one of the two closes both.
        """
        client = AsyncClient.__new__(AsyncClient)
        client._use(self._session.for_team(team_id))
        return client

    async def close(self) -> None:
        """Closes the connections. Calls that wait end with ClientClosed."""
        await self._session.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        repeatable: Optional[bool] = None,
    ) -> Any:
        """Sends any request below /api/v2, for calls that this version does not know.

        A request that is not `repeatable` is not sent again if its response was lost; without a
        word from you that is every POST and PATCH without an Idempotency-Key.
        """
        sent = {k.lower(): v for k, v in (headers or {}).items()}
        if repeatable is None:
            repeatable = method.upper() in ("GET", "HEAD", "PUT", "DELETE")
            repeatable = repeatable or "idempotency-key" in sent
        request = Request(method.upper(), path, headers=sent, repeatable=repeatable)
        if json is not None:
            request.body = json_body(build_body(json))
        return parse_answer((await self._session.send(request)).content)

    async def run(
        self,
        tool: str,
        inputs: Optional[Mapping[str, Any]] = None,
        *,
        num_results: Optional[int] = None,
        webhook_url: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        plugin: Optional[str] = None,
        retry_of: Optional[str] = None,
        tool_fields_hash: Optional[str] = None,
        team_id: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
        on_event: Optional[Callable[[Event], None]] = None,
    ) -> types.Generation:
        """Starts a run of a tool, by its slug or id, and waits for its results.

        It is `runs.create` and `runs.wait`. Raises RunFailed if the run does not succeed; it costs
        nothing then.
        """
        created = await self.runs.create(
            tool,
            inputs,
            num_results=num_results,
            webhook_url=webhook_url,
            metadata=metadata,
            plugin=plugin,
            retry_of=retry_of,
            tool_fields_hash=tool_fields_hash,
            team_id=team_id,
            idempotency_key=idempotency_key,
        )
        run = await self.runs.wait(
            created["request_id"], team_id=team_id, timeout=timeout, on_event=on_event
        )
        if run["status"] != "succeeded":
            raise RunFailed(run)
        return run

    async def download(
        self,
        file: Mapping[str, Any],
        to: Union[str, os.PathLike[str]],
        *,
        progress: Optional[Progress] = None,
    ) -> str:
        """Downloads the file of an output, an upload or an item of the library.

        `to` is the path of the file, or a folder. The file appears when it is whole and right; the
        result is its path.
        """
        return await download_file(self._session, file, to, progress=progress)

    async def sign_in(
        self,
        *,
        plugin_kind: Optional[str] = None,
        show: Optional[Callable[[types.DeviceCodes], None]] = None,
    ) -> types.SignInResult:
        """Signs a person in with their browser (RFC 8628), and keeps the tokens in the store.

        `show` gets the code and the URL for the person; without it they are printed. Returns when
        the person has approved. Raises TimeoutExpired when the codes have expired, and
        SignInRequired when the person has refused.
        """
        if not self._session.credential.can_refresh:
            raise ValueError("the client has an access token, and no store for the tokens of a sign-in")
        codes = await self.auth.start_device(plugin_kind=plugin_kind)
        (show or _print_codes)(codes)
        deadline = time.monotonic() + codes["expires_in"]
        interval = float(codes["interval"])
        pause = interval
        while True:
            if time.monotonic() + pause > deadline:
                raise TimeoutExpired("The code has expired before the sign-in was approved.")
            await self._session.timer.sleep(pause)
            pause = interval
            request = self._session.prepare(operations.POLL_DEVICE_BY_BODY, {})
            request.body = json_body(build_body({"device_code": codes["device_code"]}))
            request.retry = Retry(attempts=1)
            try:
                result = parse_answer((await self._session.send(request)).content)
            except NetworkError:
                # RFC 8628, section 3.5: poll less often when the connection fails.
                interval = pause = min(60.0, interval * 2)
                continue
            except APIError as error:
                if error.code == "SLOW_DOWN":
                    interval = float(error.details.get("interval") or interval + 5)
                    pause = max(interval, error.retry_after or 0.0)
                elif error.status == 410:
                    raise SignInRequired("The sign-in was refused, or its code has expired.") from error
                elif error.status >= 500 or error.status in (408, 429):
                    pause = max(interval, error.retry_after or 0.0)
                elif error.code != "AUTHORIZATION_PENDING":
                    raise
                continue
            await self._session.credential.save(result["tokens"])
            return cast(types.SignInResult, result)

    async def sign_out(self) -> None:
        """Signs this device out, and forgets its tokens."""
        try:
            await self.auth.revoke_device()
        except SignInRequired:
            pass
        await self._session.credential.forget()


def _print_codes(codes: types.DeviceCodes) -> None:
    print(
        f"Open {codes['verification_url']} and compare the code {codes['user_code']}.",
        file=sys.stderr,
    )
