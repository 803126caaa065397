"""Numbers of configurations packed into one text, such as "3.81543,,64", which has half the bytes of JSON.

Times are in microseconds; a missing number is empty. The script `data.js` parses these texts.
"""

from collections.abc import Iterable
from decimal import Decimal


def pack_numbers(values: Iterable[float | None], *, is_time: bool, digits: int | None) -> str:
    """Pack numbers into a text, with some significant digits or all. Times (`is_time`) must be in seconds."""
    return ",".join("" if value is None else _pack_number(value, is_time, digits) for value in values)


def _pack_number(value: float, is_time: bool, digits: int | None) -> str:
    text = repr(value).removesuffix(".0") if digits is None else f"{value:.{digits}g}"
    if not is_time:
        return text
    text = format(Decimal(text).scaleb(6), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def pack_runs(values: Iterable[int | None]) -> str:
    """Return the text of integers: "64,,-," for 64, 64, None, None. A missing one is a dash, a repeated item empty."""
    texts = ["-" if value is None else str(value) for value in values]
    return ",".join("" if text == previous else text for text, previous in zip(texts, [None, *texts], strict=False))


def read_number(text: str, place: int, *, is_time: bool) -> float | None:
    """Return the number at index `place` of a text, times in seconds; None if it is missing."""
    number = text.split(",")[place]
    return float(f"{number}e-6" if is_time else number) if number else None


def count_numbers(text: str) -> int:
    """Return how many numbers a text has, without missing ones."""
    return sum(map(bool, text.split(",")))
