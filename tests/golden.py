"""Golden texts of tests/data; WRITE_GOLDEN=1 rewrites them."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType


def golden(file: str, text: str, commits: Mapping[str, str] = MappingProxyType({})) -> tuple[str, str]:
    """Return a text with hashes of commits replaced by their names, and the golden file's content."""
    for name, commit in commits.items():
        text = text.replace(commit, f"<{name}>").replace(commit[:8], f"<{name}>")
    path = Path(__file__).parent / "data" / file
    if "WRITE_GOLDEN" in os.environ:
        path.write_text(text, encoding="utf-8")
    return text, path.read_text(encoding="utf-8")
