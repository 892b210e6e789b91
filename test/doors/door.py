"""Drives Atelier's OpenAI-compatible interface with OpenAI's own client, and
prints the ids of the runs: python door.py URL KEY PICTURE."""

import base64
import json
import pathlib
import sys
import time

import openai

base_url, key, picture = sys.argv[1:4]
client = openai.OpenAI(base_url=base_url, api_key=key)
photo = pathlib.Path(picture)
runs = set()


def note(result):
    assert result._request_id, result
    runs.add(result._request_id)
    return result


def decode(text):
    return base64.b64decode(text)


models = [m.id for m in client.models.list()]
assert {"gradient", "sketch", "speech", "still-to-video"} <= set(models), models
assert client.models.retrieve("sketch").owned_by == "atelier"

by_url = note(client.images.generate(model="gradient", prompt="unused"))
assert by_url.data[0].url.startswith("http")
inline = note(client.images.generate(model="sketch", prompt="red fox", size="1024x1024", response_format="b64_json", extra_body={"seed": 7, "steps": 2}))
assert decode(inline.data[0].b64_json)[1:4] == b"PNG"
assert inline.usage.total_tokens == 1
events = [e.type for e in client.images.generate(model="sketch", prompt="red fox", stream=True, partial_images=2)]
assert events[-1] == "image_generation.completed", events

edited = note(client.images.edit(model="adjust", image=photo, prompt="unused", response_format="b64_json", extra_body={"exposure": 1}))
assert len(decode(edited.data[0].b64_json)) > 1000

speech = client.audio.speech.create(model="speech", input="Good morning.", voice="alloy", response_format="wav")
assert speech.read()[:4] == b"RIFF"
runs.add(speech.response.headers["x-request-id"])

video = note(client.videos.create(model="still-to-video", prompt="unused", input_reference=photo, seconds="1", size="640x360", extra_body={}))
while video.status in ("queued", "in_progress"):
    time.sleep(0.2)
    video = client.videos.retrieve(video.id)
assert video.status == "completed", video
assert client.videos.download_content(video.id).read()[4:8] == b"ftyp"
assert [v.id for v in client.videos.list(limit=1)] == [video.id]
assert client.videos.delete(video.id).deleted

for call, error, param in [
    (lambda: client.images.generate(model="nothing", prompt="x"), openai.NotFoundError, "model"),
    (lambda: client.images.generate(model="sketch", prompt="x", size="1024x1792"), openai.BadRequestError, "size"),
    (lambda: client.images.generate(model="sketch", prompt="x", n=99), openai.BadRequestError, "n"),
    (lambda: openai.OpenAI(base_url=base_url, api_key="ate_wrong").models.list(), openai.AuthenticationError, None),
]:
    try:
        call()
    except error as e:
        assert e.param == param, e
    else:
        raise AssertionError(f"no error about {param}")

print(json.dumps(sorted(runs)))
