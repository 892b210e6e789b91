"""Runs the examples of the README against a running service (ATELIER_URL, ATELIER_TOKEN)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, List

import pytest

from atelier import Client

from .test_service import png

README = Path(__file__).parent.parent / "README.md"


def examples() -> List[str]:
    return re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_examples(
    client: Client,
    service_url: str,
    service_token: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("photo.png").write_bytes(png())
    known: Dict[str, Any] = {"client": client}
    ran = 0
    for example in examples():
        if "sign_in(" in example or "verify(" in example:
            continue  # they need a person with a browser, and a request of the service
        text = example.replace("https://atelier.example", service_url).replace("atl_p_…", service_token)
        # The first examples close their client at their end.
        exec(compile(text, str(README), "exec"), {**known, "__name__": "readme"} if "Client(" in text else known)
        ran += 1
    assert ran == len(examples()) - 2
    assert len(list(Path("pictures").iterdir())) == 5
    assert Path("copy.png").stat().st_size > 0
