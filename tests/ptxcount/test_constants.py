"""Integer constants of C++ text, and expressions of them."""

import pytest

from ptxcount.source.constants import CONSTANTS, VARIABLES, evaluate_constant

SOURCE = """
#define TILE 32 // lanes
#define ROWS (TILE / 4) /* of a block */
constexpr unsigned long WIDTH{ROWS * 2u}, HEIGHT = 0x1F'00;
static const int depth(3);
const int unknown = count(), again = again + 1;
int block = 256; block = {128};
"""


@pytest.mark.parametrize(("text", "value"), [
    ("0", 0), ("TILE", 32), ("ROWS", 8), ("WIDTH + HEIGHT", 16 + 0x1F00), ("depth", 3),
    ("static_cast<size_t>(TILE) << 2", 128), ("-(int)ROWS % 5", -3), ("std::size_t{4} * 2", 8), ("7 / 2", 3),
    ("-7/2", -3), ("7 % -2", 1), ("(1.5 + 1) * 2", 5), ("1e999", None), ("2 ** 3", None), ("1 << 64", None),
    ("unknown", None), ("again", None), ("missing", None), ("TILE / 0", None), ("f(2)", None), ("", None),
    ("1 +", None), ("sizeof(int)", None), ("TILE > 4 ? 1 : 2", None),
])  # fmt: skip
@pytest.mark.parametrize("definitions", [CONSTANTS, VARIABLES])
def test_expression_of_constants_has_a_value(text: str, value: int | None, definitions: str) -> None:
    assert evaluate_constant(text, SOURCE, definitions) == value


@pytest.mark.parametrize(("definitions", "value"), [(CONSTANTS, None), (VARIABLES, 128)])
def test_variable_has_its_last_value(definitions: str, value: int | None) -> None:
    assert evaluate_constant("block", SOURCE, definitions) == value
