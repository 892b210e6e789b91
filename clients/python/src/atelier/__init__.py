"""Client for Atelier, a self-hosted service that runs media generation jobs.

`Client` blocks, `AsyncClient` is for asyncio; both have the same calls.
"""

from . import types, webhooks
from ._async.client import AsyncClient
from ._async.pages import AsyncPages
from ._async.streams import AsyncEvents
from ._body import FileLike, Progress
from ._rules import Event, Retry, library_input, upload_input
from ._sync.client import Client
from ._sync.pages import Pages
from ._sync.streams import Events
from .errors import (
    APIError,
    AtelierError,
    ClientClosed,
    DownloadError,
    NetworkError,
    RunFailed,
    SignInRequired,
    TimeoutExpired,
    WebhookError,
)
from .tokens import FileStore, MemoryStore, TokenStore

__version__ = "2.0.0"

__all__ = [
    "APIError",
    "AsyncClient",
    "AsyncEvents",
    "AsyncPages",
    "AtelierError",
    "Client",
    "ClientClosed",
    "DownloadError",
    "Event",
    "Events",
    "FileLike",
    "FileStore",
    "MemoryStore",
    "NetworkError",
    "Pages",
    "Progress",
    "Retry",
    "RunFailed",
    "SignInRequired",
    "TimeoutExpired",
    "TokenStore",
    "WebhookError",
    "__version__",
    "library_input",
    "types",
    "upload_input",
    "webhooks",
]
