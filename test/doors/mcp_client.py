"""Drives Atelier's Model Context Protocol with the official client, and prints
the ids of the runs: python mcp_client.py URL KEY MODE, where MODE is a version of
the protocol, or auto."""

import asyncio
import base64
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

url, key, mode = sys.argv[1:4]
runs = []


def note(result):
    assert not result.is_error, result
    runs.append(result.structured_content["run_id"])
    return result


async def main():
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer " + key}, timeout=120) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"search_tools", "get_run", "gradient", "sketch", "speech", "still-to-video"} <= set(tools), sorted(tools)
            assert "prompt" in tools["sketch"].input_schema["required"], tools["sketch"].input_schema

            seen = []

            async def progress(done, total, message):
                seen.append((done, total))

            small = note(await client.call_tool("sketch", {"prompt": "a red fox", "seed": 7}, progress_callback=progress))
            pictures = [c for c in small.content if c.type == "image"]
            assert pictures and base64.b64decode(pictures[0].data)[:4] in (b"\x89PNG", b"\xff\xd8\xff\xe0"), small.content
            assert seen and all(a <= b for a, b in zip(seen, seen[1:])), seen

            large = note(await client.call_tool("gradient", {"size": "2048x2048"}))
            links = [c for c in large.content if c.type == "resource_link"]
            assert links and (await http.get(str(links[0].uri))).status_code == 200, large.content

            wrong = await client.call_tool("sketch", {"prompt": "x", "colour": "red"})
            assert wrong.is_error and "colour" in wrong.content[0].text and "prompt*" in wrong.content[0].text, wrong

            spoken = note(await client.call_tool("speech", {"text": "hello"}))
            assert any(c.type == "audio" for c in spoken.content), spoken.content
            again = await client.call_tool("get_run", {"run_id": runs[0]})
            assert again.structured_content["results"] == small.structured_content["results"], again
            library = small.structured_content["results"][0]["library_id"]
            note(await client.call_tool("cut-out", {"picture": library}) if "cut-out" in tools else small)

            before = (await client.call_tool("get_balance", {})).structured_content
            assert before["held"] == 0, before
            call = asyncio.create_task(client.call_tool("sketch", {"prompt": "never", "num_results": 4}))
            for _ in range(200):
                if (await client.call_tool("get_balance", {})).structured_content["held"] > 0:
                    break
                await asyncio.sleep(0.05)
            call.cancel()
            try:
                await call
            except asyncio.CancelledError:
                pass
            for _ in range(300):
                after = (await client.call_tool("get_balance", {})).structured_content
                if after["held"] == 0:
                    break
                await asyncio.sleep(0.1)
            assert after["held"] == 0, after
    print(json.dumps({"runs": sorted(set(runs)), "cancelled_cost": before["tokens"] - after["tokens"]}))


asyncio.run(main())
