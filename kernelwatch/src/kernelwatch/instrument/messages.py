"""What a benchmark's process says beside its number: lines on standard error, which asv hands to the runner."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PREFIX = "coalescing-watch: "
_LINE = re.compile(rf"^{_PREFIX}(?P<facts>\{{.*\}})$", re.MULTILINE)


def machine_code(sha256: str, launch: str, arch: str) -> None:
    """Say which machine code a launch, given by its text without arguments, is."""
    _say("machine code", sha256=sha256, launch=launch, arch=arch)


def held_back(reason: str, params: Sequence[Any]) -> None:
    """Say that a sample of a configuration was taken while the GPU held itself back."""
    _say("held back", reason=reason, params=[str(param) for param in params])


def stopped(reason: str, params: Sequence[Any]) -> None:
    """Say why no more samples of a configuration were taken."""
    _say("stopped", reason=reason, params=[str(param) for param in params])


def spent(seconds: Mapping[str, float]) -> None:
    """Say on what the measuring process spent its time."""
    _say("spent", seconds=dict(seconds))


def _say(about: str, **facts: Any) -> None:
    print(f"{_PREFIX}{json.dumps({'about': about, **facts})}", file=sys.stderr, flush=True)


def read(output: str, about: str) -> Iterator[dict[str, Any]]:
    """The facts of each remark of a kind, in the order in which they were printed."""
    for match in _LINE.finditer(output):
        facts: dict[str, Any] = json.loads(match["facts"])
        if facts["about"] == about:
            yield facts
