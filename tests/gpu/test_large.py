"""Arrays of more than 2^31 elements, which the measuring process compares on the device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from kernelwatch.instrument import server, session
from kernelwatch.kernel import Launch
from kernelwatch.suite import registry
from tests.cases import COVERING_TRANSPOSES, list_array_shapes

pytestmark = pytest.mark.gpu

EXTENTS = {"offset_copy": {"size": 2**31 + 5, "offset": 3}, "stride_copy": {"size": 2**26 + 5, "stride": 33}}


@pytest.fixture(scope="module", autouse=True)
def _process() -> Iterator[None]:
    """Run a measuring process for the module: it keeps the reference that all transposes share."""
    with server.start_server():
        yield


@pytest.mark.parametrize("name", [*COVERING_TRANSPOSES, *EXTENTS])
def test_indices_beyond_32_bits_are_right(name: str) -> None:
    launch = Launch(name, "int8", arguments=EXTENTS.get(name, {"rows": 46349, "columns": 46351}))
    assert np.prod(list_array_shapes(registry.find_kernel(name), "int8", **launch.arguments)[1]) > 2**31
    try:
        assert session.measure_launch(launch, samples=1).samples
    except NotImplementedError as error:  # a GPU with less memory
        pytest.skip(str(error))
