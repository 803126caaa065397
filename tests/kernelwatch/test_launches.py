"""Launches parsed from host code: the block, and integer template arguments."""

from __future__ import annotations

import pytest

from kernelwatch.scaffold.parse_launches import iter_launches

#: Text before `k<T><<<1, block>>>(x);` -> block and template argument; None where unknown.
DECLARED: dict[str, tuple[tuple[int, ...], str]] = {
    "const int T = 32; dim3 block(T, 8);": ((32, 8), "32"),
    "constexpr unsigned T{32U}; dim3 const block{T, 8U, 1U};": ((32, 8, 1), "32"),
    "constexpr auto T = {32u}; auto const block = dim3{T, 8};": ((32, 8), "32"),
    "constexpr std::size_t T(32); dim3 block = {T, 8};": ((32, 8), "32"),
    "unsigned T = 0x20u; dim3 other(1), block((T), T / 4);": ((32, 8), "32"),
    "auto T{1'024}; int block{T};": ((1024,), "1024"),
    "const int T = static_cast<int>(64ull / 2); const dim3 block{static_cast<unsigned int>(T),\n 8};": ((32, 8), "32"),
    "const int T = (int) 32; dim3 block(unsigned(T), (unsigned long) 8);": ((32, 8), "32"),
    "const int T = sizeof(int); dim3 block{pick(T)};": ((), ""),
}


@pytest.mark.parametrize("declared", DECLARED)
def test_initialisations(declared: str) -> None:
    """Forms are `=`, braces and brackets, with suffixes and casts, of numbers and blocks."""
    (launch,) = iter_launches("a.cu", f"void go() {{ {declared} k<T><<<1, block>>>(x); }}")
    assert (launch.block, *launch.template) == DECLARED[declared]
