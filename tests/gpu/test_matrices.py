"""Tensor core products on a device and in the executor: exact integers and float64, bounded floats."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwatch.kernel import load_function
from ptxcount.engine.execute import execute_kernel
from tests.ptxcount.matrices import LAYOUTS, PRODUCTS, Product, quad_pairs

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_product_as_on_the_device(product: Product) -> None:
    """Integer and float64 products are equal. Others are within a bound, as the device sums fewer bits than float64."""
    import pycuda.driver as cuda

    load_function.current_context()
    registers, _ = product.inputs()
    element = product.element("d")
    on_cpu = np.zeros((product.registers("d"), 32), np.uint64 if element.bits == 64 else np.uint32)
    on_device = on_cpu.copy()
    execute_kernel(product.text(), "snippet", (1, 1, 1), (32, 1, 1), [on_cpu, *registers])
    module = cuda.module_from_buffer(product.text().encode())
    module.get_function("snippet")(cuda.InOut(on_device), *map(cuda.In, registers), block=(32, 1, 1), grid=(1, 1))
    if product.types[0] in ("s32", "f64"):
        np.testing.assert_array_equal(on_cpu, on_device)
        return
    bits = element.bits
    cpu_values, device_values = (element.decode(words.view(f"u{bits // 8}")) for words in (on_cpu, on_device))
    np.testing.assert_allclose(
        cpu_values, device_values, rtol=2e-3 if bits == 16 else 1e-5, atol=2e-2 if bits == 16 else 1e-3
    )


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("layouts", LAYOUTS)
def test_quad_pairs_place_elements_as_the_formulas(layouts: str, kind: str) -> None:
    """The device places the elements of four products as the formulas of `quad_pairs` do."""
    import pycuda.driver as cuda

    load_function.current_context()
    text, registers, expected = quad_pairs(layouts, kind)
    out = np.zeros_like(expected)
    kernel = cuda.module_from_buffer(text.encode()).get_function("snippet")
    kernel(cuda.Out(out), *map(cuda.In, registers), block=(32, 1, 1), grid=(1, 1))
    np.testing.assert_array_equal(out, expected)
