"""Sparse products on a device equal NumPy's, so that the tests' layouts of metadata are the device's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwatch.kernel import load_function
from tests.ptxcount import test_sparse_warpgroups as warpgroups
from tests.ptxcount.test_narrow_products import FORMS, Form, assemble_result, draw_product, write_product

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("form", [form for form in FORMS if form.sparse and not form.kind], ids=str)
def test_sparse_mma_equals_numpy(form: Form) -> None:
    """Sparse ``mma`` is exact in all forms of sm_80 and sm_90, as all numbers are small."""
    import pycuda.driver as cuda

    load_function.current_context()
    registers, expected = draw_product(form)
    words = np.ascontiguousarray(np.concatenate(list(registers.values())))
    out = np.zeros((32, 2 if form.result == "f16" else 4), np.uint32)
    module = cuda.module_from_buffer(write_product(form, registers).encode())
    module.get_function("snippet")(cuda.In(words), cuda.Out(out), block=(32, 1, 1), grid=(1, 1))
    np.testing.assert_array_equal(assemble_result(form, out).astype(np.float64), expected)


@pytest.mark.parametrize("form", warpgroups.FORMS, ids=str)
def test_sparse_wgmma_equals_numpy(form: warpgroups.Form) -> None:
    import pycuda.driver as cuda

    load_function.current_context()

    def launch(text: str, arrays: list[Any]) -> None:
        function = cuda.module_from_buffer(text.encode()).get_function("snippet")
        function(*map(cuda.InOut, arrays), block=(128, 1, 1), grid=(1, 1))

    warpgroups.check_product(form, launch)
