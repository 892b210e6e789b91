"""Runs two tools with the package that openapi-python-client made, which is
called atelier_client: python walk.py URL TOKEN."""

import hashlib
import io
import sys
import time
import uuid

import httpx

from atelier_client import AuthenticatedClient
from atelier_client.api.catalog import get_tool, list_tools
from atelier_client.api.generations import create_generation, get_generation
from atelier_client.api.uploads import create_upload
from atelier_client.models import (
    CreateGenerationRequest,
    Error,
    ErrorCode,
    FieldGroup,
    FieldLeaf,
    Generation,
    GenerationCreated,
    GenerationStatus,
    Inputs,
    SizeInput,
    ToolDetail,
    ToolList,
    Upload,
    UploadForm,
    UploadRef,
)
from atelier_client.types import File

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url + "/api/v2", token=token)


def run(name, **values):
    tools = list_tools.sync(client=client)
    assert isinstance(tools, ToolList), tools
    tool = next(t for t in tools.data if t.name == name)
    detail = get_tool.sync(tool.id, client=client)
    assert isinstance(detail, ToolDetail), detail
    assert all(isinstance(node, (FieldGroup, FieldLeaf)) for node in detail.fields), detail.fields

    inputs = Inputs()
    inputs.additional_properties = values
    created = create_generation.sync(
        client=client,
        body=CreateGenerationRequest(tool_id=tool.id, tool_fields_hash=detail.tool_fields_hash, inputs=inputs),
        idempotency_key=str(uuid.uuid4()),
    )
    assert isinstance(created, GenerationCreated), created
    wait = created.retry_after_seconds
    while True:
        time.sleep(wait)
        record = get_generation.sync(created.request_id, client=client)
        assert isinstance(record, Generation), record
        if record.status != GenerationStatus.PENDING:
            return record
        wait = record.retry_after_seconds


def download(record):
    assert record.status == GenerationStatus.SUCCEEDED, record
    output = record.outputs[0]
    content = httpx.get(output.url).content
    assert hashlib.sha256(content).hexdigest() == output.sha256
    return content


picture = download(run("Gradient", style="radial", size=SizeInput(width=64, height=48)))

file = File(payload=io.BytesIO(picture), file_name="gradient.png", mime_type="image/png")
upload = create_upload.sync(client=client, body=UploadForm(file=file))
assert isinstance(upload, Upload), upload
raw = create_upload.sync(client=client, body=File(payload=io.BytesIO(picture)))
assert isinstance(raw, Upload), raw
small = run("Resize", picture=UploadRef(kind="UPLOAD_REF", id=upload.id), size=SizeInput(width=32, height=24))
download(small)
assert small.outputs[0].width == 32, small

missing = get_generation.sync("00000000-0000-4000-8000-000000000000", client=client)
assert isinstance(missing, Error) and missing.error.code == ErrorCode.NOT_FOUND, missing
