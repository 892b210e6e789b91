"""Files on this machine: bodies that are read piece by piece, and downloads that appear when they are whole."""

from __future__ import annotations

import io
import json
import os
import uuid
from typing import (
    Any,
    BinaryIO,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

FileLike = Union[str, "os.PathLike[str]", bytes, BinaryIO]
"""A path, the bytes themselves, or a binary file that can seek."""

Progress = Callable[[int, int], None]
"""Is called with the bytes that were sent and the size of the file."""

CHUNK = 256 * 1024


class Source:
    """A file to send: its name, its size and its bytes from any offset."""

    def __init__(self, file: FileLike, name: Optional[str] = None) -> None:
        self._file = file
        if isinstance(file, bytes):
            self.size = len(file)
            guess = "file"
        elif isinstance(file, (str, os.PathLike)):
            self.size = os.stat(file).st_size
            guess = os.path.basename(os.fspath(file))
        elif hasattr(file, "seek") and hasattr(file, "read"):
            self.size = file.seek(0, io.SEEK_END)
            guess = os.path.basename(str(getattr(file, "name", "file")))
        else:
            raise TypeError(f"a path, bytes or a binary file is expected, not {type(file).__name__}")
        self.name = guess if name is None else name

    def read(self, start: int, length: int) -> Iterator[bytes]:
        """Yields `length` bytes from `start` on; fails if the file has become shorter."""
        if isinstance(self._file, bytes):
            yield from self._pieces(io.BytesIO(self._file), start, length)
        elif isinstance(self._file, (str, os.PathLike)):
            with open(self._file, "rb") as stream:
                yield from self._pieces(stream, start, length)
        else:
            yield from self._pieces(self._file, start, length)

    def _pieces(self, stream: BinaryIO, start: int, length: int) -> Iterator[bytes]:
        stream.seek(start)
        while length > 0:
            piece = stream.read(min(CHUNK, length))
            if not piece:
                raise OSError(f"{self.name} has become shorter while it was sent")
            length -= len(piece)
            yield piece


def split_files(inputs: Mapping[str, Any]) -> Tuple[Dict[str, Any], List[Source]]:
    """The inputs of a run with each file replaced by its number in the form, and the files."""
    sources: List[Source] = []

    def convert(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [convert(item) for item in value]
        if not is_file(value):
            return value
        sources.append(Source(value))
        return {"kind": "MULTIPART", "file_index": len(sources) - 1}

    return {name: convert(value) for name, value in inputs.items()}, sources


def without_files(inputs: Mapping[str, Any]) -> Dict[str, Any]:
    """The inputs without files: the price of a run does not depend on them."""
    kept: Dict[str, Any] = {}
    for name, value in inputs.items():
        if isinstance(value, (list, tuple)):
            kept[name] = [item for item in value if not is_file(item)]
        elif not is_file(value):
            kept[name] = value
    return kept


def is_file(value: Any) -> bool:
    """Whether an input is a file to send along. A text is a text, never a path."""
    return isinstance(value, (bytes, os.PathLike)) or hasattr(value, "read")


class Body:
    """The body of a request: bytes and parts of files, with a known length."""

    def __init__(
        self,
        parts: Sequence[Union[bytes, Part]],
        content_type: str,
        progress: Optional[Callable[[int], None]] = None,
    ) -> None:
        self.parts = parts
        self.content_type = content_type
        self.length = sum(len(p) if isinstance(p, bytes) else p.length for p in parts)
        self.progress = progress or (lambda sent: None)
        """Is called with the number of bytes of this attempt after each piece."""

    def pieces(self) -> Iterator[bytes]:
        """Yields the bytes, from the beginning each time."""
        for part in self.parts:
            if isinstance(part, bytes):
                yield part
            else:
                yield from part.source.read(part.start, part.length)


class Part:
    """A part of a file."""

    def __init__(self, source: Source, start: int = 0, length: Optional[int] = None) -> None:
        self.source = source
        self.start = start
        self.length = source.size - start if length is None else length


class NewFile:
    """A file that has a temporary name beside its path until it is whole."""

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self.path = os.fspath(path)
        folder, name = os.path.split(os.path.abspath(self.path))
        os.makedirs(folder, exist_ok=True)
        self._temporary = os.path.join(folder, f".{name[:150]}.{uuid.uuid4().hex}.part")
        self._stream = open(self._temporary, "xb")  # noqa: SIM115

    def write(self, piece: bytes) -> None:
        self._stream.write(piece)

    def restart(self) -> None:
        """Begins anew with an empty file."""
        self._stream.seek(0)
        self._stream.truncate()

    def keep(self) -> None:
        """Gives the file its name."""
        self._stream.close()
        os.replace(self._temporary, self.path)

    def discard(self) -> None:
        """Removes the file, unless it has its name."""
        self._stream.close()
        try:
            os.unlink(self._temporary)
        except FileNotFoundError:
            pass


def json_body(content: bytes) -> Body:
    return Body([content], "application/json")


def form_body(payload: Mapping[str, Any], files: Sequence[Source]) -> Body:
    """A multipart form with the JSON of a run and its files (RFC 7578)."""
    boundary = uuid.uuid4().hex
    parts: List[Union[bytes, Part]] = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="payload"\r\n'
        "Content-Type: application/json\r\n\r\n".encode(),
        json.dumps(payload, ensure_ascii=False, allow_nan=False).encode(),
    ]
    for source in files:
        name = source.name.replace("%", "%25").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        parts.append(
            f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n".encode()
        )
        parts.append(Part(source))
    parts.append(f"\r\n--{boundary}--\r\n".encode())
    return Body(parts, f"multipart/form-data; boundary={boundary}")
