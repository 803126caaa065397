"""A fake GPU for the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import fake_gpu


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    with fake_gpu(monkeypatch) as device:
        yield device


@pytest.fixture
def small_l2_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    """Yield a fake GPU with a small L2 cache: few sets of buffers fill it, and all are compared."""
    with fake_gpu(monkeypatch, l2_bytes=24 << 10) as device:
        yield device
