"""Where the tokens of a sign-in are kept."""

from __future__ import annotations

import json
import os
import time
import uuid
from typing import Any, Callable, Mapping, Optional, Protocol, Union

from ._types import Tokens

__all__ = ["FileStore", "MemoryStore", "TokenStore"]

STALE_LOCK = 30.0
"""Seconds after which a lock counts as left behind by a process that died."""

EXPIRY_MARGIN = 5.0
"""Seconds before its end from which an ID token is replaced."""


class TokenStore(Protocol):
    """Keeps the tokens of one sign-in. Methods may block; the asyncio client calls them in a thread.

    The lock lets one process at a time refresh. It is held for one refresh only.
    """

    def load(self) -> Optional[Tokens]:
        """The tokens; None before the sign-in."""

    def save(self, tokens: Tokens) -> None:
        """Replaces the tokens, wholly or not at all."""

    def delete(self) -> None:
        """Forgets the tokens."""

    def try_lock(self) -> bool:
        """Takes the lock, unless somebody has it."""

    def renew_lock(self) -> None:
        """Says that the holder of the lock is alive."""

    def unlock(self) -> None:
        """Gives the lock back."""


class MemoryStore:
    """Keeps the tokens in memory, for one process and as long as it lives."""

    def __init__(self, tokens: Optional[Tokens] = None) -> None:
        self._tokens = tokens

    def load(self) -> Optional[Tokens]:
        return self._tokens

    def save(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def delete(self) -> None:
        self._tokens = None

    def try_lock(self) -> bool:
        return True

    def renew_lock(self) -> None:
        pass

    def unlock(self) -> None:
        pass


class FileStore:
    """Keeps the tokens in a file that only its owner can read.

    A lock file beside it (`.lock`) keeps two processes from refreshing at once.
    """

    def __init__(
        self, path: Union[str, os.PathLike[str]], *, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = os.path.abspath(os.path.expanduser(path))
        self._lock_path = self.path + ".lock"
        self._clock = clock
        self._mark = ""

    def load(self) -> Optional[Tokens]:
        try:
            with open(self.path, encoding="utf-8") as stream:
                record = json.load(stream)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(f"{self.path} is no file of tokens") from error
        return read_tokens(record, self.path)

    def save(self, tokens: Tokens) -> None:
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        temporary = f"{self.path}.{uuid.uuid4().hex}.tmp"
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(number, "w", encoding="utf-8") as stream:
                json.dump(tokens, stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, self.path)
        except BaseException:
            _remove(temporary)
            raise

    def delete(self) -> None:
        _remove(self.path)

    def try_lock(self) -> bool:
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        self._remove_stale_lock()
        mark = uuid.uuid4().hex
        try:
            number = os.open(self._lock_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return False
        with os.fdopen(number, "w") as stream:
            stream.write(mark)
        self._mark = mark
        return True

    def renew_lock(self) -> None:
        if self._holds_lock():
            os.utime(self._lock_path)

    def unlock(self) -> None:
        if self._holds_lock():
            _remove(self._lock_path)
        self._mark = ""

    def _holds_lock(self) -> bool:
        """Whether the lock file is ours still: after 30 seconds others may have replaced it."""
        try:
            with open(self._lock_path) as stream:
                return bool(self._mark) and stream.read() == self._mark
        except FileNotFoundError:
            return False

    def _remove_stale_lock(self) -> None:
        if not self._is_stale(self._lock_path):
            return
        # Of several who find the lock stale, one moves it away. If that one was so late that it
        # has moved a new lock, it puts the lock back.
        moved = f"{self._lock_path}.{uuid.uuid4().hex}"
        try:
            os.rename(self._lock_path, moved)
        except FileNotFoundError:
            return
        try:
            if not self._is_stale(moved):
                os.link(moved, self._lock_path)
        except FileExistsError:
            pass
        finally:
            _remove(moved)

    def _is_stale(self, path: str) -> bool:
        try:
            return self._clock() - os.stat(path).st_mtime > STALE_LOCK
        except FileNotFoundError:
            return False


def read_tokens(record: Any, where: str) -> Tokens:
    """The tokens in a record: the tokens themselves, or the result of a sign-in."""
    if isinstance(record, dict) and isinstance(record.get("tokens"), dict):
        record = record["tokens"]
    if not isinstance(record, dict) or not isinstance(record.get("refresh_token"), str):
        raise ValueError(f"{where} has no refresh_token")
    return {
        "id_token": str(record.get("id_token", "")),
        "refresh_token": record["refresh_token"],
        "expires_at": int(record.get("expires_at", 0)),
    }


def is_fresh(tokens: Mapping[str, Any], now: float) -> bool:
    """Whether the ID token can still be used."""
    return bool(tokens["id_token"]) and float(tokens["expires_at"]) - now > EXPIRY_MARGIN


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
