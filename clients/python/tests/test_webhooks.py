"""Verification of webhooks, and the handlers."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import io
import json
import time
from typing import Any, Dict, List

import pytest

from atelier import WebhookError, webhooks
from atelier.webhooks import Delivery

KEY = b"a secret of the account"
OLD_KEY = b"the secret before it"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OLD_SECRET = "whsec_" + base64.b64encode(OLD_KEY).decode()
BODY = json.dumps({"type": "generation.succeeded", "data": {"prompt": "ü"}}, ensure_ascii=False).encode()


def sign(key: bytes, body: bytes = BODY, identity: str = "msg_1", stamp: str = "1000") -> str:
    digest = hmac.new(key, f"{identity}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def headers(signature: str, identity: str = "msg_1", stamp: str = "1000") -> Dict[str, str]:
    return {"Webhook-Id": identity, "webhook-timestamp": stamp, "WEBHOOK-SIGNATURE": signature}


def test_known_answer() -> None:
    # The example of the Standard Webhooks specification.
    delivery = webhooks.verify(
        b'{"test": 2432232314}',
        {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        now=1614265330,
    )
    assert json.dumps(delivery.event) == '{"test": 2432232314}'


def test_accepted() -> None:
    for signature, secrets in [
        (sign(KEY), SECRET),
        (sign(OLD_KEY) + " " + sign(KEY), SECRET),
        ("v1a,xyz v1,broken= " + sign(KEY), SECRET),
        (sign(OLD_KEY), [SECRET, OLD_SECRET]),
    ]:
        delivery = webhooks.verify(BODY, headers(signature), secrets, now=1299.0)
        assert (delivery.id, delivery.timestamp) == ("msg_1", 1000)
        assert delivery.event["type"] == "generation.succeeded"


@pytest.mark.parametrize(
    "body, given, now",
    [
        (BODY + b" ", headers(sign(KEY)), 1000.0),
        (BODY, headers(sign(OLD_KEY)), 1000.0),
        (BODY, headers(sign(KEY)), 1301.0),
        (BODY, headers(sign(KEY)), 699.0),
        (BODY, headers(sign(KEY), identity="msg_2"), 1000.0),
        (BODY, headers(sign(KEY), stamp="1001"), 1000.0),
        (BODY, headers(sign(KEY, stamp="-1"), stamp="-1"), 0.0),
        (BODY, headers("v2" + sign(KEY)[2:]), 1000.0),
        (BODY, headers(""), 1000.0),
        (BODY, {}, 1000.0),
        (b"no json", headers(sign(KEY, b"no json")), 1000.0),
    ],
)
def test_refused(body: bytes, given: Dict[str, str], now: float) -> None:
    with pytest.raises(WebhookError):
        webhooks.verify(body, given, SECRET, now=now)


def test_secret_that_is_none() -> None:
    for secret in ("", "whsec_", "whsec_%%%"):
        with pytest.raises(ValueError):
            webhooks.verify(BODY, headers(sign(KEY)), secret, now=1000.0)
    with pytest.raises(ValueError):
        webhooks.verify(BODY, headers(sign(KEY)), [], now=1000.0)


def call_wsgi(method: str, signature: str, stamp: str, handle: Any) -> str:
    status: List[str] = []
    environ = {
        "REQUEST_METHOD": method,
        "CONTENT_LENGTH": str(len(BODY)),
        "HTTP_WEBHOOK_ID": "msg_1",
        "HTTP_WEBHOOK_TIMESTAMP": stamp,
        "HTTP_WEBHOOK_SIGNATURE": signature,
        "wsgi.input": io.BytesIO(BODY),
    }
    application = webhooks.wsgi_handler(SECRET, handle)
    application(environ, lambda line, fields: status.append(line))
    return status[0]


def test_wsgi_handler() -> None:
    stamp = str(int(time.time()))
    heard: List[Delivery] = []
    assert call_wsgi("POST", sign(KEY, stamp=stamp), stamp, heard.append) == "204 No Content"
    assert call_wsgi("POST", sign(OLD_KEY, stamp=stamp), stamp, heard.append) == "401 Unauthorized"
    assert call_wsgi("GET", sign(KEY, stamp=stamp), stamp, heard.append).startswith("405")
    assert [d.id for d in heard] == ["msg_1"]

    def fail(delivery: Delivery) -> None:
        raise RuntimeError("the database is away")

    with pytest.raises(RuntimeError):
        call_wsgi("POST", sign(KEY, stamp=stamp), stamp, fail)


def test_asgi_handler() -> None:
    stamp = str(int(time.time()))
    heard: List[str] = []

    async def handle(delivery: Delivery) -> None:
        heard.append(delivery.id)

    async def call(signature: str) -> int:
        pieces = [BODY[:10], BODY[10:]]
        sent: List[Dict[str, Any]] = []

        async def receive() -> Dict[str, Any]:
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def send(message: Dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers(signature, stamp=stamp).items()],
        }
        await webhooks.asgi_handler(SECRET, handle)(scope, receive, send)
        return int(sent[0]["status"])

    assert asyncio.run(call(sign(KEY, stamp=stamp))) == 204
    assert asyncio.run(call(sign(OLD_KEY, stamp=stamp))) == 401
    assert heard == ["msg_1"]
