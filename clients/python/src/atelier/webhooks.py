"""Verification of webhooks (Standard Webhooks 1.0.0), and handlers for WSGI and ASGI servers."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from typing import (
    Any,
    Awaitable,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
    cast,
)

from ._types import BudgetEvent, WebhookEvent
from .errors import WebhookError

__all__ = ["Delivery", "Secrets", "asgi_handler", "verify", "wsgi_handler"]

TOLERANCE = 300.0
"""Seconds by which the time of a webhook may differ from the clock of the receiver."""

BODY_LIMIT = 8 * 1024 * 1024

Secrets = Union[str, Sequence[str]]
"""A secret (`whsec_…`), or several while one replaces the other."""


@dataclass(frozen=True)
class Delivery:
    """A verified webhook. The same `id` can be delivered more than once: act on it once."""

    id: str
    timestamp: int
    event: Union[WebhookEvent, BudgetEvent]


def verify(
    body: bytes,
    headers: Mapping[str, str],
    secrets: Secrets,
    *,
    tolerance: float = TOLERANCE,
    now: Optional[float] = None,
) -> Delivery:
    """Checks the signature and the time of a webhook, and returns its event.

    `body` is the body as it arrived, byte for byte. Raises WebhookError for anything that the
    holder of a secret has not sent in the last five minutes.
    """
    keys = [_decode_secret(s) for s in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise ValueError("at least one secret is required")
    found = {name.lower(): value for name, value in headers.items()}
    identity = found.get("webhook-id", "")
    stamp = found.get("webhook-timestamp", "")
    if not identity or not (stamp.isascii() and stamp.isdigit()):
        raise WebhookError("The request has no webhook-id and webhook-timestamp.")
    timestamp = int(stamp)
    if abs((time.time() if now is None else now) - timestamp) > tolerance:
        raise WebhookError("The webhook is too old, or the clock of this machine is wrong.")

    signed = f"{identity}.{stamp}.".encode() + body
    wanted = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    matches = False
    for given in _signatures(found.get("webhook-signature", "")):
        for digest in wanted:
            matches |= hmac.compare_digest(given, digest)
    if not matches:
        raise WebhookError("No signature of the webhook matches.")
    try:
        event = json.loads(body)
    except ValueError as error:
        raise WebhookError("The body of the webhook is no JSON.") from error
    return Delivery(identity, timestamp, cast("Union[WebhookEvent, BudgetEvent]", event))


def _decode_secret(secret: str) -> bytes:
    text = secret[len("whsec_") :] if secret.startswith("whsec_") else secret
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError("the secret of webhooks is no whsec_… of the service")
    return key


def _signatures(header: str) -> Iterable[bytes]:
    for entry in header.split():
        version, _, text = entry.partition(",")
        if version != "v1":
            continue
        try:
            yield base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            continue


def _refusal(method: str, length: int) -> Optional[int]:
    """The status for a request that cannot be a webhook."""
    if method != "POST":
        return 405
    return 413 if length > BODY_LIMIT else None


def wsgi_handler(
    secrets: Secrets, handle: Callable[[Delivery], None]
) -> Callable[[Dict[str, Any], Callable[..., Any]], List[bytes]]:
    """A WSGI application that verifies webhooks and calls `handle`.

    If `handle` raises, the error goes on to the server, which answers 500: the service then
    delivers again.
    """

    def application(environ: Dict[str, Any], start_response: Callable[..., Any]) -> List[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        status = _refusal(str(environ["REQUEST_METHOD"]), length)
        if status is None:
            headers = {
                name[len("HTTP_") :].replace("_", "-"): str(value)
                for name, value in environ.items()
                if name.startswith("HTTP_")
            }
            body = environ["wsgi.input"].read(length)
            try:
                delivery = verify(body, headers, secrets)
            except WebhookError:
                status = 401
            else:
                handle(delivery)
                status = 204
        start_response(_STATUS_LINES[status], [("Content-Length", "0")] if status != 204 else [])
        return []

    return application


_STATUS_LINES = {
    204: "204 No Content",
    401: "401 Unauthorized",
    405: "405 Method Not Allowed",
    413: "413 Content Too Large",
}

_Receive = Callable[[], Awaitable[Dict[str, Any]]]
_Send = Callable[[Dict[str, Any]], Awaitable[None]]


def asgi_handler(
    secrets: Secrets, handle: Callable[[Delivery], Awaitable[None]]
) -> Callable[[Dict[str, Any], _Receive, _Send], Awaitable[None]]:
    """The same for ASGI servers; `handle` is a coroutine function."""

    async def application(scope: Dict[str, Any], receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"the handler of webhooks serves no {scope['type']}")
        status, body = await _read_asgi(scope, receive)
        if status is None:
            headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
            try:
                delivery = verify(body, headers, secrets)
            except WebhookError:
                status = 401
            else:
                await handle(delivery)
                status = 204
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return application


async def _read_asgi(scope: Dict[str, Any], receive: _Receive) -> Tuple[Optional[int], bytes]:
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = bool(message.get("more_body")) and len(body) <= BODY_LIMIT
    return _refusal(str(scope["method"]), len(body)), body
