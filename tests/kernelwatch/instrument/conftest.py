"""A fake GPU for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import fake_gpu


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    """Provide a device of 16 MB that executes PTX."""
    with fake_gpu(monkeypatch) as device:
        yield device
