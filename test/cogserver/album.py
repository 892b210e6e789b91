"""Models for tests that yield their results one after the other.

Album has no streaming responses, so the server sends all results at the end.
Radio has them: the server sends each sound as soon as it is there.
"""

import os
import struct
import sys
import tempfile
import time
from typing import Iterator

from cog import BasePredictor, Input, Path, streaming


def wav(seed: int) -> bytes:
    """A tenth of a second of sound that follows from the seed."""
    samples = b"".join(struct.pack("<h", (seed * 7919 + i * 31) % 20000 - 10000) for i in range(800))
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16, b"data", len(samples))
    return head + samples


def play(pieces: int, wait: float, fail: str) -> Iterator[Path]:
    for i in range(pieces):
        print(f"{100 * i // pieces}%|####| {i}/{pieces}", file=sys.stderr, flush=True)
        fd, name = tempfile.mkstemp(suffix=".wav")
        with os.fdopen(fd, "wb") as f:
            f.write(wav(i))
        yield Path(name)
        end = time.monotonic() + wait
        while time.monotonic() < end:
            time.sleep(0.02)
    if fail:
        raise RuntimeError(fail)


class Album(BasePredictor):
    def predict(
        self,
        prompt: str = Input(description="What to play"),
        pieces: int = Input(default=3, ge=0, le=100),
        wait: float = Input(default=0, ge=0, le=600, description="Seconds to wait after each piece"),
        fail: str = Input(default="", description="Fail with these words at the end"),
        disable_safety_checker: bool = Input(default=False),
        safety_tolerance: int = Input(default=2, ge=1, le=6),
    ) -> Iterator[Path]:
        yield from play(pieces, wait, fail)


class Radio(BasePredictor):
    @streaming
    def predict(
        self,
        prompt: str = Input(description="What to play"),
        pieces: int = Input(default=3, ge=0, le=100),
        wait: float = Input(default=0, ge=0, le=600, description="Seconds to wait after each piece"),
        fail: str = Input(default="", description="Fail with these words at the end"),
        disable_safety_checker: bool = Input(default=False),
        safety_tolerance: int = Input(default=2, ge=1, le=6),
    ) -> Iterator[Path]:
        yield from play(pieces, wait, fail)
