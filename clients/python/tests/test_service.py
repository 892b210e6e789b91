"""The library against a running service (ATELIER_URL, ATELIER_TOKEN)."""

from __future__ import annotations

import asyncio
import hashlib
import random
import struct
import zlib
from pathlib import Path
from typing import List

import pytest

from atelier import APIError, AsyncClient, Client, RunFailed, library_input, upload_input

SMALL = {"width": 64, "height": 64}


def png() -> bytes:
    """A picture of 8 × 8 random pixels."""
    rows = b"".join(b"\0" + random.randbytes(8 * 3) for _ in range(8))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def wav(size: int) -> bytes:
    """A sound of 16-bit noise."""
    head = struct.pack("<4sI4s4sI", b"RIFF", size - 8, b"WAVE", b"fmt ", 16)
    head += struct.pack("<HHIIHH4sI", 1, 1, 44100, 88200, 2, 16, b"data", size - 44)
    return head + random.randbytes(size - 44)


def test_run_and_download(client: Client, tmp_path: Path) -> None:
    names: List[str] = []
    run = client.run(
        "gradient", {"seed": 5, "size": SMALL}, num_results=2, on_event=lambda event: names.append(event.name)
    )
    assert run["status"] == "succeeded"
    assert run["seed"] == 5
    assert names[-1] == "done"
    paths = client.runs.download(run, tmp_path)
    assert len(paths) == 2
    for path, output in zip(paths, run["outputs"]):
        assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == output["sha256"]

    item = client.library.get(run["outputs"][0]["id"])
    assert item["request_id"] == run["request_id"]
    assert run["request_id"] in [r["request_id"] for r in client.runs.list(limit=1)]


def test_same_key_is_the_same_run(client: Client) -> None:
    tool = "gradient"
    first = client.runs.create(tool, {"size": SMALL}, idempotency_key="python-once")
    again = client.runs.create(tool, {"size": SMALL}, idempotency_key="python-once")
    assert first["request_id"] == again["request_id"]
    with pytest.raises(APIError) as caught:
        client.runs.create(tool, {"size": SMALL, "seed": 1}, idempotency_key="python-once")
    assert caught.value.code == "IDEMPOTENCY_KEY_CONFLICT"
    client.runs.wait(first["request_id"])


def test_invalid_inputs(client: Client) -> None:
    tool = "gradient"
    with pytest.raises(APIError) as caught:
        client.runs.create(tool, {"sede": 1})
    assert caught.value.code == "INVALID_REQUEST"
    assert caught.value.trace_id
    assert "inputs.sede" in str(caught.value)
    with pytest.raises(APIError) as caught:
        client.runs.create("no-such-tool")
    assert caught.value.code == "NOT_FOUND"


def test_files_as_inputs(client: Client, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    upload = client.uploads.create(tmp_path / "a.png")
    output = client.run("resize", {"picture": upload_input(upload), "size": {"width": 4, "height": 4}})["outputs"][0]
    assert output["width"] == 4
    with (tmp_path / "a.png").open("rb") as stream:
        for picture in (tmp_path / "a.png", stream, png(), library_input(output)):
            created = client.runs.create("resize", {"picture": picture, "size": {"width": 3, "height": 3}})
            assert client.runs.wait(created["request_id"], timeout=60)["status"] == "succeeded"


def test_uploads(client: Client, tmp_path: Path) -> None:
    upload = client.uploads.create(png(), name="small.png")
    assert upload["name"] == "small.png"
    path = client.download(upload, tmp_path / "back.png")
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == upload["sha256"]
    assert upload["id"] in [u["id"] for u in client.uploads.list(type="IMG", limit=5)]
    client.uploads.delete(upload["id"])
    with pytest.raises(APIError) as caught:
        client.uploads.get(upload["id"])
    assert caught.value.code == "NOT_FOUND"


def test_resumable_uploads(client: Client) -> None:
    sound = wav(9 * 1024 * 1024)
    upload = client.uploads.create(sound, name="noise.wav")
    assert (upload["size_bytes"], upload["sha256"]) == (len(sound), hashlib.sha256(sound).hexdigest())
    client.uploads.delete(upload["id"])
    with pytest.raises(APIError) as caught:
        client.uploads.create(random.randbytes(1000), resumable=True)
    assert caught.value.code == "UNSUPPORTED_MEDIA_TYPE"


def test_cancel(client: Client) -> None:
    tool = "gradient"
    created = client.runs.create(tool, {"size": {"width": 4096, "height": 4096}}, num_results=8)
    client.runs.cancel(created["request_id"])
    run = client.runs.wait(created["request_id"], timeout=60)
    assert run["status"] in ("cancelled", "succeeded")
    if run["status"] == "cancelled":
        assert RunFailed(run).code == "CANCELLED"


def test_flows(client: Client) -> None:
    draw = {"id": "draw", "tool": "gradient", "inputs": {"size": {"value": SMALL}}}
    shrink = {"id": "shrink", "tool": "resized", "inputs": {"picture": {"step": "draw"}}}
    checked = client.flows.check(name="From Python", steps=[draw, shrink])
    assert [problem["path"] for problem in checked["problems"]] == ["steps.1.tool"]
    with pytest.raises(APIError) as caught:
        client.flows.create(name="From Python", steps=[draw, shrink])
    assert caught.value.code == "INVALID_REQUEST"

    steps = [draw, {**shrink, "tool": "resize"}]
    price = client.flows.check(name="From Python", steps=steps)["price"]
    assert price is not None
    assert price["tokens"] == 1
    flow = client.flows.create(name="From Python", steps=steps)
    changed = client.flows.change(flow["id"], version=1, name="Changed", steps=steps)
    assert changed["version"] == 2
    with pytest.raises(APIError) as caught:
        client.flows.change(flow["id"], version=1, name="Late", steps=steps)
    assert caught.value.status == 412
    assert client.flows.get(flow["id"])["name"] == "Changed"
    assert [one["name"] for one in client.flows.list_versions(flow["id"])] == ["Changed", "From Python"]
    assert flow["id"] in [one["id"] for one in client.flows.list()]

    run = client.run(flow["slug"], {})
    assert [step["step"] for step in run["steps"] or []] == ["draw", "shrink"]
    assert client.flows.draft(library_id=run["outputs"][0]["id"])["steps"]
    client.flows.delete(flow["id"])
    with pytest.raises(APIError) as caught:
        client.flows.get(flow["id"])
    assert caught.value.status == 404


def test_boards(client: Client) -> None:
    board = client.boards.create(name="From Python")
    node = client.boards.add_node(board["id"], kind="TEXT", text="hello", x=1, y=2, width=100, height=50)
    changed = client.boards.change_node(board["id"], node["id"], text="hello again")
    assert changed["text"] == "hello again"
    assert [n["id"] for n in client.boards.get(board["id"])["nodes"]] == [node["id"]]
    with pytest.raises(APIError) as caught:
        client.boards.rename(board["id"], name="x", if_match='"1"')
    assert caught.value.status == 412
    client.boards.delete(board["id"])


def test_other_resources(client: Client) -> None:
    assert client.me.get()["user"]
    assert client.tools.list_tags().first_page()["types"]
    assert list(client.tools.list_kits())
    assert client.runs.preview_cost("gradient", {"seed": 1}, num_results=2)["can_run"]
    assert client.runs.preview_cost("resize", {"picture": png()})["can_run"]
    assert client.webhooks.get_secret()["secret"].startswith("whsec_")
    with pytest.raises(APIError) as caught:
        list(client.access_tokens.list())
    assert (caught.value.code, caught.value.status) == ("FORBIDDEN", 403)
    assert client.service.get_openapi()["openapi"].startswith("3.")
    assert client.request("GET", "/me")["user"]["email"]
    assert next(iter(client.events.stream())).name in ("run", "balance")


def test_asyncio(service_url: str, service_token: str, tmp_path: Path) -> None:
    async def use() -> None:
        async with AsyncClient(service_url, service_token) as client:
            run, upload = await asyncio.gather(
                client.run("gradient", {"size": SMALL}),
                client.uploads.create(wav(9 * 1024 * 1024), name="noise.wav"),
            )
            paths = await client.runs.download(run, tmp_path)
            assert hashlib.sha256(Path(paths[0]).read_bytes()).hexdigest() == run["outputs"][0]["sha256"]
            await client.uploads.delete(upload["id"])
            names = [tool["name"] async for tool in client.tools.list(limit=3)]
            assert "Gradient" in names and len(names) > 3

    asyncio.run(use())
