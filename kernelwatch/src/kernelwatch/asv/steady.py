"""The moments of a run: the wall clock's when it began, and from there on by a clock that nobody sets.

A clock that is set back during a run would else give records that end before they start, and durations below zero.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

_BEGAN, _AT = datetime.now(timezone.utc), time.monotonic()


def now() -> datetime:
    """Return the moment."""
    return _BEGAN + timedelta(seconds=time.monotonic() - _AT)


#: Stand for the module `datetime` in asv's runner, and for `time` in its `run`, which asks how long a build took.
DATETIME = SimpleNamespace(datetime=SimpleNamespace(now=lambda _: now()), timezone=timezone)
TIME = SimpleNamespace(time=time.monotonic)
