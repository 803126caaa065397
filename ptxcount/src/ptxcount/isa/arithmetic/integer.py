"""Integer, logic and shift instructions on NumPy arrays (PTX ISA, "Integer Arithmetic", "Logic and Shift")."""

from collections.abc import Callable

import numpy as np

from ...lanes.warps import Array


def _count_bits(a: Array) -> int:
    return a.dtype.itemsize * 8


def _widen(a: Array) -> Array:
    return a.astype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")


def multiply_wide(a: Array, b: Array) -> Array:
    """Return the product, with twice the bits of the factors."""
    return _widen(a) * _widen(b)


def multiply_high(a: Array, b: Array) -> Array:
    """Return the upper half of the product."""
    if a.dtype.itemsize < 8:
        return (multiply_wide(a, b) >> _count_bits(a)).astype(a.dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = a.view(np.uint64), b.view(np.uint64)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    carry = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (carry >> half)
    if a.dtype.kind == "i":  # correct the unsigned product for negative factors
        high = high - np.where(a < 0, y, 0) - np.where(b < 0, x, 0)
    return np.asarray(high.astype(np.uint64).view(a.dtype))


def multiply24(shift: int, a: Array, b: Array) -> Array:
    """Return 32 bits of the 48-bit product of the lowest 24 bits of two words, from the bit ``shift`` on."""
    x, y = ((factor << 8 >> 8).astype(np.int64) for factor in (a, b))
    return np.asarray((x * y >> shift).astype(a.dtype))


def find_nth_set(mask: Array, base: Array, offset: Array) -> Array:
    """Compute ``fns``: count set bits from the bit ``base`` on; return the position of number ``offset``, or all ones.

    A positive ``offset`` counts upwards, a negative one downwards. For 0, only the bit ``base`` may be the result.
    """
    mask, base, offset = np.broadcast_arrays(mask, base, offset.view(np.int32))
    positions = np.full(mask.shape, 0xFFFFFFFF, np.uint32)
    remaining, place = np.maximum(np.abs(offset.astype(np.int64)), 1), base.astype(np.int64)
    for _ in range(32):
        in_word = (place >= 0) & (place < 32)
        is_set = in_word & ((mask >> np.clip(place, 0, 31).astype(np.uint32)) & 1).astype(bool)
        is_set &= (offset != 0) | (place == base)
        remaining = remaining - is_set
        positions = np.where(is_set & (remaining == 0), place, positions).astype(np.uint32)
        place = place + np.where(offset < 0, -1, 1)
    return positions


def _limit_amount(limit: int, amount: Array) -> Array:
    # Limit 31 is for .wrap, 32 for .clamp.
    return amount & 31 if limit == 31 else np.minimum(amount, 32)


def extend(limit: int, a: Array, bits: Array) -> Array:
    """Compute ``szext``: extend the lowest ``bits`` bits to 32; ``limit`` is 31 for ``.wrap``, 32 for ``.clamp``."""
    places = (32 - _limit_amount(limit, bits)).astype(np.uint32)
    return shift_right(shift_left(a, places), places)


def divide(a: Array, b: Array) -> Array:
    """Divide towards zero; all ones for a zero divisor, which is machine-specific in the PTX ISA."""
    if a.dtype.kind == "u":
        return np.where(b == 0, ~np.zeros_like(a), a // np.where(b == 0, 1, b).astype(b.dtype))
    if a.dtype.itemsize == 8:
        safe = np.where((b == 0) | (b == -1), 1, b).astype(b.dtype)
        quotient = a // safe  # rounded down
        is_below = (a % safe != 0) & ((a < 0) != (safe < 0))
        quotient = np.where(is_below, quotient + 1, quotient)
        return np.where(b == 0, np.array(-1, a.dtype), np.where(b == -1, -a, quotient)).astype(a.dtype)
    return np.where(b == 0, -1, divide(a.astype(np.int64), b.astype(np.int64))).astype(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    """Return the remainder with the sign of the dividend; the dividend for a zero divisor."""
    return np.where(b == 0, a, a - divide(a, b) * b).astype(a.dtype)


def shift_left(a: Array, amount: Array) -> Array:
    """Shift left; an amount of at least the width gives 0."""
    places = np.minimum(amount, _count_bits(a) - 1).astype(a.dtype)
    if amount.size == 1:
        return a << places if amount.item() < _count_bits(a) else np.zeros_like(a)
    return np.where(amount < _count_bits(a), a << places, 0).astype(a.dtype)


def shift_right(a: Array, amount: Array) -> Array:
    """Shift right, arithmetically for signed types; an amount of at least the width leaves only copies of the sign."""
    places = np.minimum(amount, _count_bits(a) - 1).astype(a.dtype)
    if amount.size == 1 and (a.dtype.kind == "i" or amount.item() < _count_bits(a)):
        return np.asarray(a >> places)
    beyond = a >> (_count_bits(a) - 1) if a.dtype.kind == "i" else np.zeros_like(a)
    return np.where(amount < _count_bits(a), a >> places, beyond).astype(a.dtype)


def _join_words(low: Array, high: Array) -> Array:
    return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)


def funnel_left(limit: int, low: Array, high: Array, amount: Array) -> Array:
    """Compute ``shf.l``: the upper word of ``high:low`` shifted left; for ``limit``, see `extend`."""
    places = _limit_amount(limit, amount).astype(np.uint64)
    return ((_join_words(low, high) << places) >> np.uint64(32)).astype(np.uint32)


def funnel_right(limit: int, low: Array, high: Array, amount: Array) -> Array:
    """Compute ``shf.r``: the lower word of ``high:low`` shifted right; for ``limit``, see `extend`."""
    return (_join_words(low, high) >> _limit_amount(limit, amount).astype(np.uint64)).astype(np.uint32)


def population_count(a: Array) -> Array:
    """Count the set bits, as u32."""
    x = a.astype(np.uint64)
    m1, m2, m4 = (np.uint64(m) for m in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F))
    x = x - ((x >> np.uint64(1)) & m1)
    x = (x & m2) + ((x >> np.uint64(2)) & m2)
    x = (x + (x >> np.uint64(4))) & m4
    return ((x * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.uint32)


def _fill_below(a: Array) -> Array:
    """Set all bits below the highest set bit, as u64: 0b0100 -> 0b0111."""
    x = a.astype(np.uint64)
    for places in (1, 2, 4, 8, 16, 32):
        x = x | (x >> np.uint64(places))
    return x


def leading_zeros(a: Array) -> Array:
    """Count the zero bits above the highest set bit, as u32."""
    return (_count_bits(a) - population_count(_fill_below(a)).astype(np.int64)).astype(np.uint32)


def find_leading(a: Array) -> Array:
    """Compute ``bfind``: the position of the highest bit that is no copy of the sign; all ones if there is none."""
    magnitude = np.where(a < 0, ~a, a) if a.dtype.kind == "i" else a
    unsigned = magnitude.astype(a.dtype).view(f"u{a.dtype.itemsize}")
    return (population_count(_fill_below(unsigned)).astype(np.int64) - 1).astype(np.uint32)


def shift_to_leading(a: Array) -> Array:
    """Compute ``bfind.shiftamt``: the left shift that moves the bit of `find_leading` to the top, or all ones."""
    place = find_leading(a)
    return np.where(place == 0xFFFFFFFF, place, _count_bits(a) - 1 - place).astype(np.uint32)


def mask_clamped(start: Array, length: Array) -> Array:
    """Compute ``bmsk.clamp``: ``length`` ones from the bit ``start`` on, without ones beyond bit 31."""
    ones = np.full(np.broadcast_shapes(start.shape, length.shape), 0xFFFFFFFF, np.uint32)
    return shift_left(~shift_left(ones, length), start)


def reverse_bits(a: Array) -> Array:
    """Reverse the order of the bits."""
    result = np.zeros_like(a)
    for place in range(_count_bits(a)):
        result |= ((a >> a.dtype.type(place)) & a.dtype.type(1)) << a.dtype.type(_count_bits(a) - 1 - place)
    return result


def extract_field(a: Array, start: Array, length: Array) -> Array:
    """Compute ``bfe``: extract a bit field; for signed types, sign-extend the field.

    A field that reaches beyond the top bit has the sign of the value.
    """
    bits = _count_bits(a)
    start, length = (start & 255).astype(np.int64), (length & 255).astype(np.int64)
    unsigned = a.view(f"u{a.dtype.itemsize}")
    field = shift_right(unsigned, start) & ~shift_left(~np.zeros_like(unsigned), length)
    if a.dtype.kind == "u":
        return field
    top = np.minimum(start + length - 1, bits - 1)
    sign = (shift_right(unsigned, np.maximum(top, 0)) & 1).astype(bool) & (length > 0)
    kept = np.clip(np.minimum(length, bits - start), 0, bits)
    extended = np.where(sign, field | shift_left(~np.zeros_like(unsigned), kept), field)
    return extended.astype(unsigned.dtype).view(a.dtype)


def insert_field(field: Array, a: Array, start: Array, length: Array) -> Array:
    """Compute ``bfi``: insert the lowest ``length`` bits of ``field`` into ``a`` at bit ``start``."""
    start, length = (start & 255).astype(np.int64), (length & 255).astype(np.int64)
    mask = shift_left(~shift_left(~np.zeros_like(a), length), start)
    return (a & ~mask) | (shift_left(field, start) & mask)


def permute_bytes(a: Array, b: Array, selector: Array) -> Array:
    """Compute ``prmt``: select four bytes of ``b:a`` by four 4-bit selectors, the lowest for the lowest byte.

    The lower three bits of a selector are the number of the byte. The top bit replicates the sign of the byte.
    """
    pool, result = _join_words(a, b), np.zeros(np.broadcast_shapes(a.shape, b.shape, selector.shape), np.uint32)
    for place in range(4):
        pick = (selector >> np.uint32(4 * place)) & np.uint32(15)
        byte = (pool >> (8 * (pick & 7)).astype(np.uint64)) & np.uint64(255)
        byte = np.where(pick & 8, np.where(byte & np.uint64(128), 255, 0), byte)
        result |= byte.astype(np.uint32) << np.uint32(8 * place)
    return result


#: Modes of ``prmt``: functions from a byte's position and the selector's two low bits to the source byte.
PERMUTATIONS: dict[str, Callable[[int, Array], Array]] = {
    "f4e": lambda place, n: n + place,
    "b4e": lambda place, n: (n - place) & 7,
    "rc8": lambda place, n: n,
    "ecl": lambda place, n: np.maximum(n, place),
    "ecr": lambda place, n: np.minimum(n, place),
    "rc16": lambda place, n: 2 * (n & 1) + place % 2,
}


def permute_by(find_byte: Callable[[int, Array], Array], a: Array, b: Array, selector: Array) -> Array:
    """Compute ``prmt`` with the function of a mode of `PERMUTATIONS`."""
    selectors = sum(find_byte(place, (selector & 3).astype(np.int64)) << 4 * place for place in range(4))
    return permute_bytes(a, b, np.asarray(selectors).astype(np.uint32))


def logic3(a: Array, b: Array, c: Array, table: Array) -> Array:
    """Compute ``lop3``: for each three bits, the bit ``4a + 2b + c`` of ``table``, which is equal for all threads."""
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), a.dtype)
    for row in range(8):
        if int(table.flat[0]) >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def saturate_to_int32(total: Array) -> Array:
    """Clamp a 64-bit sum to the range of int32."""
    return np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)


def multiply_add_saturated(high: Callable[..., Array], a: Array, b: Array, c: Array) -> Array:
    """Add ``c`` to ``high(a, b)``, the upper half of a product, and clamp the sum to the range of int32."""
    return saturate_to_int32(high(a, b).astype(np.int64) + c)
