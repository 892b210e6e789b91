"""The errors that the library raises; all are an AtelierError."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ._types import Generation

__all__ = [
    "APIError",
    "AtelierError",
    "ClientClosed",
    "DownloadError",
    "NetworkError",
    "RunFailed",
    "SignInRequired",
    "TimeoutExpired",
    "WebhookError",
]


class AtelierError(Exception):
    """Any error of this library."""


class APIError(AtelierError):
    """An error response of the service. Act on `code`, show `message`."""

    def __init__(
        self,
        *,
        status: int,
        code: str,
        message: str,
        retryable: bool = False,
        details: Optional[Dict[str, Any]] = None,
        trace_id: str = "",
        retry_after: Optional[float] = None,
    ) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.retryable = retryable
        self.details: Dict[str, Any] = details or {}
        self.trace_id = trace_id
        self.retry_after = retry_after
        """Seconds to wait before the next attempt; None if the service named no time."""
        super().__init__(message)

    def __str__(self) -> str:
        lines: List[str] = [f"{self.code}: {self.message}"]
        fields = self.details.get("fields")
        if isinstance(fields, list):
            lines += [f"  {f.get('path')}: {f.get('message')}" for f in fields if isinstance(f, dict)]
        return "\n".join(lines)

    def __reduce__(self) -> Any:
        return (_rebuild_api_error, (dict(self.__dict__),))


def _rebuild_api_error(values: Dict[str, Any]) -> APIError:
    return APIError(**values)


class NetworkError(AtelierError):
    """No response came, or none that could be read, in all attempts. The cause is the last failure."""


class TimeoutExpired(AtelierError):
    """The time that the caller allowed is over. The run or the sign-in that was waited for goes on."""


class SignInRequired(AtelierError):
    """The client has no credential, or the service has ended the sign-in: sign in again."""


class ClientClosed(AtelierError):
    """The client was closed while the call waited."""


class DownloadError(AtelierError):
    """The bytes of a file differ from its record, or the file is gone."""


class WebhookError(AtelierError):
    """The request is no webhook of the service: do not trust its body."""


class RunFailed(AtelierError):
    """The run has failed or was cancelled; it cost nothing. `run` is its record."""

    def __init__(self, run: Generation) -> None:
        self.run = run
        error = run["error"]
        self.code: str = error["code"] if error else run["status"].upper()
        super().__init__(f"{self.code}: {error['message']}" if error else f"The run was {run['status']}.")
