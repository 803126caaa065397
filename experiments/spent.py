"""Where the time goes: functions that note how long their calls take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def timed(function: Callable[..., Any], spent: dict[str, float], part: str) -> Callable[..., Any]:
    """The function, adding the seconds of each call to `spent[part]`, whether it returns or raises."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[part] = spent.get(part, 0.0) + time.perf_counter() - start

    return wrapped
