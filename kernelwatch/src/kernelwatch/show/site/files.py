"""Data as scripts: a page that was opened as a file may load nothing else from beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson


def write(path: Path, data: Any) -> None:
    """Write data for `files.js` to load; the file's name ends in `.js`.

    NaN and infinities, which JSON does not know, become null: pages show that as missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script(orjson.dumps(data).decode()), encoding="utf-8")


def script(text: str) -> str:
    """The script that hands over a JSON text.

    As a text, for JSON means the same to every reader: as JavaScript, `__proto__` would be no name like any other.
    """
    return f"arrived({json.dumps(text)});\n"
