"""A model for tests: pictures that follow from the inputs, without any library.

Predictor works on one prediction at a time, as most models do. Several is the
same for a server with COG_MAX_CONCURRENCY above 1, which has to be async.
"""

import asyncio
import hashlib
import os
import struct
import tempfile
import time
import zlib
from typing import List, Optional

from cog import BasePredictor, Input, Path


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, seed: bytes) -> bytes:
    """A picture of stripes whose colours follow from the seed."""
    rows = []
    for y in range(height):
        colour = hashlib.sha256(seed + struct.pack(">I", y // 8)).digest()[:3]
        rows.append(b"\0" + colour * width)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"".join(rows), 1))
        + chunk(b"IEND", b"")
    )


def save(data: bytes, suffix: str) -> Path:
    fd, name = tempfile.mkstemp(suffix=suffix)
    with os.fdopen(fd, "wb") as f:
        f.write(data)
    return Path(name)


def draw(prompt, picture, width, height, steps, num_outputs, seed, style, mode) -> List[Path]:
    if mode == "crash":
        os._exit(3)
    if mode == "text":
        return [save(f"{prompt} {seed}".encode(), ".txt")]
    if mode == "garbage":
        return [save(b"\0\1\2\3 this is no picture", ".png")]
    if mode == "huge":
        return [save(os.urandom(1 << 20), ".bin")]
    if mode == "none":
        return []
    parts = [prompt, str(steps), style]
    if picture is not None:
        parts.append(hashlib.sha256(open(picture, "rb").read()).hexdigest())
    text = "|".join(parts).encode()
    return [
        save(png(width, height, hashlib.sha256(text + struct.pack(">QI", seed, i)).digest()), ".png")
        for i in range(num_outputs)
    ]


class Predictor(BasePredictor):
    def predict(
        self,
        prompt: str = Input(description="What to draw"),
        picture: Optional[Path] = Input(default=None, description="A picture to start from"),
        width: int = Input(default=64, ge=16, le=512),
        height: int = Input(default=64, ge=16, le=512),
        steps: int = Input(default=20, ge=1, le=50, description="Number of denoising steps"),
        guidance_scale: float = Input(default=7.5, ge=0, le=20),
        num_outputs: int = Input(default=1, ge=1, le=4, description="How many pictures"),
        seed: int = Input(default=0, ge=0, le=2147483647),
        style: str = Input(default="plain", choices=["plain", "loud"]),
        mode: str = Input(default="png", choices=["png", "text", "garbage", "huge", "none", "crash"]),
        fail: str = Input(default="", description="Fail with these words"),
        sleep: float = Input(default=0, ge=0, le=600, description="Seconds to wait first"),
    ) -> List[Path]:
        # A cancel reaches Python between two steps of the interpreter, not in
        # the middle of a long call.
        end = time.monotonic() + sleep
        while time.monotonic() < end:
            time.sleep(0.02)
        if fail:
            raise RuntimeError(fail)
        return draw(prompt, picture, width, height, steps, num_outputs, seed, style, mode)


class Several(BasePredictor):
    async def predict(
        self,
        prompt: str = Input(description="What to draw"),
        picture: Optional[Path] = Input(default=None, description="A picture to start from"),
        width: int = Input(default=64, ge=16, le=512),
        height: int = Input(default=64, ge=16, le=512),
        steps: int = Input(default=20, ge=1, le=50, description="Number of denoising steps"),
        guidance_scale: float = Input(default=7.5, ge=0, le=20),
        num_outputs: int = Input(default=1, ge=1, le=4, description="How many pictures"),
        seed: int = Input(default=0, ge=0, le=2147483647),
        style: str = Input(default="plain", choices=["plain", "loud"]),
        mode: str = Input(default="png", choices=["png", "text", "garbage", "huge", "none", "crash"]),
        fail: str = Input(default="", description="Fail with these words"),
        sleep: float = Input(default=0, ge=0, le=600, description="Seconds to wait first"),
    ) -> List[Path]:
        await asyncio.sleep(sleep)
        if fail:
            raise RuntimeError(fail)
        return draw(prompt, picture, width, height, steps, num_outputs, seed, style, mode)
