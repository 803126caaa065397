"""Reading JSON that anybody may have written: what is not as expected is refused, with its place and the reason."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

#: Limits of the facts in a record: nesting, entries of a list or mapping, characters of a text.
_DEEPEST, _MOST, _LONGEST = 5, 10_000, 2_000

_HASH = re.compile("[0-9a-f]{40}")


class RefusedError(Exception):
    """Something is not as it should be; the message begins with where."""


def require(holds: object, where: object, reason: str) -> None:
    """Raise RefusedError unless something holds."""
    if not holds:
        raise RefusedError(f"{where}: {reason}")


def read(path: Path) -> Any:
    """The JSON document of a file; NaN and Infinity are kept, since asv writes them."""
    try:
        return parse(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError:
        raise RefusedError(f"{path}: is not UTF-8") from None


def parse(text: str, where: object) -> Any:
    """A JSON document in which no key comes twice and every number fits into 64 bits."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_int=_integer, parse_float=_real)
    except RecursionError:
        raise RefusedError(f"{where}: is nested too deeply") from None
    except ValueError as error:
        raise RefusedError(f"{where}: is not the JSON expected: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def _integer(text: str) -> int:
    if len(text) > 19:
        raise ValueError("an integer has more than 64 bits")
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def is_number(value: object) -> bool:
    """Whether it is a finite number; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_text(value: object, longest: int = _LONGEST) -> bool:
    """Whether it is a text of one line that no terminal takes for a command."""
    return isinstance(value, str) and len(value) <= longest and value.isprintable()


def is_texts(value: object) -> bool:
    """Whether it is a mapping from texts to texts."""
    return isinstance(value, dict) and all(is_text(each) for pair in value.items() for each in pair)


def is_hashes(value: object) -> bool:
    """Whether it is a list of commits' full hashes."""
    return isinstance(value, list) and all(isinstance(each, str) and _HASH.fullmatch(each) for each in value)


def is_moment(value: object) -> bool:
    """Whether it is a date and time in ISO 8601."""
    try:
        datetime.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True


def check_facts(value: Any, where: object, deep: int = 0) -> None:
    """Refuse anything but mappings and lists of texts, finite numbers, true, false and null, within limits."""
    if isinstance(value, (dict, list)):
        require(deep < _DEEPEST and len(value) <= _MOST, where, "holds too much, or is nested too deeply")
        entries: Iterable[Any] = [*value, *value.values()] if isinstance(value, dict) else value
        for each in entries:
            check_facts(each, where, deep + 1)
    else:
        require(
            value is None or isinstance(value, bool) or is_number(value) or is_text(value),
            where,
            f"{str(value)[:40]!r} is neither a finite number nor a text of one line",
        )
