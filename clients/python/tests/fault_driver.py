"""Makes runs through a faulty connection, and prints what it got.

test/clients runs it behind a proxy with faults, while the service is killed and started again. The
environment says what to do: ATELIER_URL, ATELIER_TOKENS (a file of tokens), ATELIER_CREATES (the
number of runs), ATELIER_OUT (a folder), ATELIER_FILE (to upload in parts) and ATELIER_FILE_SMALL
(a picture). Even runs are made by the blocking client, odd ones by the client for asyncio, so that
both share the file of tokens as two processes would.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List

from atelier import AsyncClient, Client, FileStore, Retry, types, upload_input

URL = os.environ["ATELIER_URL"]
TOKENS = os.environ["ATELIER_TOKENS"]
CREATES = int(os.environ["ATELIER_CREATES"])
OUT = os.environ["ATELIER_OUT"]
LARGE = os.environ["ATELIER_FILE"]
SMALL = os.environ["ATELIER_FILE_SMALL"]
RETRY = Retry(attempts=60, max_time=300, max_wait=3)
AT_ONCE = 8

printing = threading.Lock()


def uses_picture(index: int) -> bool:
    """Whether the run is one of every 20; the two clients take turns."""
    return index % 40 in (0, 21)


def gradient(index: int) -> Dict[str, Any]:
    return {"seed": index, "size": {"width": 64, "height": 64}}


def resize(upload: types.Upload) -> Dict[str, Any]:
    return {"picture": upload_input(upload), "size": {"width": 32, "height": 32}}


def print_run(index: int, run: types.Generation, paths: List[str]) -> None:
    if run["status"] != "succeeded":
        raise RuntimeError(f"run {index} has {run['status']}: {run['error']}")
    files = []
    for path in paths:
        with open(path, "rb") as stream:
            files.append({"path": path, "sha256": hashlib.sha256(stream.read()).hexdigest()})
    line = json.dumps({"index": index, "request_id": run["request_id"], "files": files})
    with printing:
        print(line, flush=True)


def drive_blocking(indexes: List[int]) -> None:
    with Client(URL, store=FileStore(TOKENS), retry=RETRY) as client:
        client.uploads.create(LARGE, resumable=True)

        def make(index: int) -> None:
            tool, inputs = "gradient", gradient(index)
            if uses_picture(index):
                tool, inputs = "resize", resize(client.uploads.create(SMALL))
            created = client.runs.create(tool, inputs)
            run = client.runs.wait(created["request_id"])
            print_run(index, run, client.runs.download(run, OUT))

        with ThreadPoolExecutor(AT_ONCE // 2) as pool:
            list(pool.map(make, indexes))


async def drive_async(indexes: List[int]) -> None:
    async with AsyncClient(URL, store=FileStore(TOKENS), retry=RETRY) as client:
        turn = asyncio.Semaphore(AT_ONCE // 2)

        async def make(index: int) -> None:
            async with turn:
                tool, inputs = "gradient", gradient(index)
                if uses_picture(index):
                    tool, inputs = "resize", resize(await client.uploads.create(SMALL))
                created = await client.runs.create(tool, inputs)
                run = await client.runs.wait(created["request_id"])
                print_run(index, run, await client.runs.download(run, OUT))

        await asyncio.gather(*(make(index) for index in indexes))


def main() -> None:
    indexes = list(range(CREATES))
    with ThreadPoolExecutor(1) as beside:
        blocking = beside.submit(drive_blocking, indexes[0::2])
        asyncio.run(drive_async(indexes[1::2]))
        blocking.result()


if __name__ == "__main__":
    main()
