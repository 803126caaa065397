"""What costs most: arrays by their part of the sectors, their lines by theirs, the worst ones with a picture."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..counting.counters import Access, LaunchCounters
from .listing import Lines, advise_shift, text_of
from .patterns import array_of, pattern
from .picture import Picture, picture

#: Lines below this part are summed up.
_LEAST = 0.01
#: At most so many lines have a picture: those whose excess is at least this part of the launch's sectors or wavefronts.
_PICTURES = 3
_WORTH = 0.02
LEGEND = "Pictures: a row is a sector and a column a lane; of wavefronts a column is a bank."


#: The units, in the order in which they are shown.
_UNITS = ("sectors", "wavefronts", "constant addresses")


def _amount(access: Access) -> int:
    return access.sectors + access.wavefronts + access.addresses


def _least(access: Access) -> int:
    if access.space == "constant":
        return access.requests
    ideal = access.sectors if access.space == "local" else min(access.sectors, access.ideal_sectors)
    return ideal + access.conflict_free


class Cost(NamedTuple):
    """The accesses of one kind to one array at a source line; what they take is counted in ``unit``."""

    unit: str
    array: str
    accesses: list[Access]

    @property
    def amount(self) -> int:
        """Their sectors, wavefronts, or constant addresses."""
        return sum(map(_amount, self.accesses))

    @property
    def least(self) -> int:
        """How many would do."""
        return sum(map(_least, self.accesses))

    @property
    def worst(self) -> Access:
        """The access with most."""
        return max(self.accesses, key=_amount)

    @property
    def words(self) -> str:
        """What a request costs, and the pattern of its lanes."""
        requests = sum(each.requests for each in self.accesses)
        each = f"{self.amount / requests:.4g}"
        text = f"{self.worst.kind}: {each} {self.unit.removesuffix('s') if each == '1' else self.unit} a request"
        text += f", {self.least / requests:.4g} would do" if self.amount > self.least else ""
        # Addresses of local memory are places in each thread's own.
        found = pattern(self.worst) if self.worst.space != "local" else None
        return text + (f"; {found.words}" if found else "") + advise_shift(self.worst)


def costs(counters: LaunchCounters, words: Sequence[str] = ()) -> list[Cost]:
    """The costs of a launch, of global memory before shared; what has most comes first, array by array.

    ``words`` are the descriptions of the arguments, whose names the arrays have.
    """
    found: defaultdict[tuple[object, ...], list[Access]] = defaultdict(list)
    for each in counters.chip_accesses():
        if each.is_uniform_constant:
            continue
        unit = "constant addresses" if each.space == "constant" else "sectors" if each.sectors else "wavefronts"
        array = array_of(each, counters.arrays, words) or f"{each.space} memory"
        found[unit, array, each.source.file, each.source.line, each.kind].append(each)
    made = [Cost(str(unit), str(array), accesses) for (unit, array, *_), accesses in found.items()]
    made = [each for each in made if each.amount]
    of = sums(made)
    return sorted(
        made, key=lambda each: (_UNITS.index(each.unit), -of[each.unit, each.array], each.array, -each.amount)
    )


def sums(found: Iterable[Cost]) -> Counter[object]:
    """The amounts by unit, and by unit and array."""
    made: Counter[object] = Counter()
    for each in found:
        made[each.unit] += each.amount
        made[each.unit, each.array] += each.amount
    return made


def pictures(found: Sequence[Cost]) -> dict[int, Picture]:
    """The pictures of the worst of these costs, by their places; each picture once."""
    made: dict[int, Picture] = {}
    of = sums(found)
    excess = [(each.amount - each.least) / of[each.unit] for each in found]
    for n in sorted(range(len(found)), key=lambda n: -excess[n]):
        is_drawn = excess[n] >= _WORTH and found[n].worst.space != "constant"
        drawn = picture(found[n].worst) if is_drawn else None
        if drawn and len(made) < _PICTURES and drawn.text() not in [each.text() for each in made.values()]:
            made[n] = drawn
    return made


def text(counters: LaunchCounters, words: Sequence[str], lines_of: Lines) -> str:
    """The costs as text; nothing where no memory is accessed."""
    found = costs(counters, words)
    drawn = pictures(found)
    return "\n".join([*_lines(found, drawn, lines_of), *[f"\n{LEGEND}"] * bool(drawn)])


def _lines(found: list[Cost], drawn: dict[int, Picture], lines_of: Lines) -> Iterator[str]:
    unit = array = ""
    of, few = sums(found), Counter[str]()
    for n, one in enumerate(found):
        if one.amount < _LEAST * of[one.unit] and n not in drawn:
            few[one.unit] += one.amount
            continue
        if one.unit != unit:
            yield f"{of[one.unit]} {one.unit}"
        if (one.unit, one.array) != (unit, array):
            yield f"{of[one.unit, one.array] / of[one.unit]:>5.0%}  {one.array}"
        unit, array = one.unit, one.array
        source = one.worst.source
        place = f"{Path(source.file).name}:{source.line}" if source.file else str(source)
        yield f"{one.amount / of[one.unit]:>10.0%}  {place}  {text_of(source.file, source.line, lines_of)}".rstrip()
        yield f"            {one.words}"
        if n in drawn:
            yield from ("", *(f"            {row}".rstrip() for row in drawn[n].text().splitlines()), "")
    for each, amount in few.items():
        yield f"       {amount} {each} at lines with less than {_LEAST:.0%} each"
