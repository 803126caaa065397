"""Cost summary of a launch: arrays sorted by cost, the source lines of each, and pictures of the worst lines."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..counting.counters import Access, LaunchCounters
from .listing import FindLines, advise_shift, find_line_text
from .patterns import find_array_name, find_pattern
from .picture import Picture, draw_access

#: Minimum share of the launch's cost for a row of its own; smaller costs are summed up.
_MIN_SHARE = 0.01
#: Maximum number of pictures. A picture needs a cost above the ideal by this share of the launch's cost.
_MAX_PICTURES = 3
_MIN_EXCESS = 0.02
LEGEND = "Pictures: a row is a sector and a column a lane; for shared memory, a row is a wavefront and a column a bank."
#: Units of cost, in the order of the listing.
_UNITS = ("sectors", "wavefronts", "constant addresses")


def _format_amount(amount: object, unit: str) -> str:
    """Format an amount with its unit: "1 sector", "2.5 sectors", "1 constant address"."""
    return f"{amount} {unit}" if str(amount) != "1" else f"1 {re.sub('(?<=ss)es$|s$', '', unit)}"


def _count_units(access: Access) -> int:
    """Return the cost of an access in its unit: sectors, wavefronts or constant addresses; the other two are 0."""
    return access.sectors + access.wavefronts + access.addresses


def _count_ideal(access: Access) -> int:
    """Return the ideal cost: packed bytes, no bank conflicts, one constant address. For local memory, the cost."""
    if access.space == "constant":
        return access.requests
    ideal = access.sectors if access.space == "local" else min(access.sectors, access.ideal_sectors)
    return ideal + access.conflict_free


class Cost(NamedTuple):
    """The cost of the accesses of one kind to one array at a source line.

    ``unit`` is sectors, wavefronts or constant addresses. Accesses without a source line share a cost.
    """

    unit: str
    array: str
    accesses: list[Access]

    @property
    def amount(self) -> int:
        """The number of units: sectors, wavefronts, or constant addresses."""
        return sum(map(_count_units, self.accesses))

    @property
    def ideal(self) -> int:
        """The amount at the ideal cost of each access, as from `_count_ideal`."""
        return sum(map(_count_ideal, self.accesses))

    @property
    def worst(self) -> Access:
        """The access with the largest amount."""
        return max(self.accesses, key=_count_units)

    @property
    def description(self) -> str:
        """The cost per request, a lower ideal, the pattern of the worst access if known, and `advise_shift`."""
        requests = sum(access.requests for access in self.accesses)
        text = f"{self.worst.kind}: {_format_amount(f'{round(self.amount / requests, 2):g}', self.unit)} per request"
        text += f", ideal {round(self.ideal / requests, 2):g}" if self.amount > self.ideal else ""
        # Addresses of local memory are offsets per thread: they show no pattern.
        pattern = find_pattern(self.worst) if self.worst.space != "local" else None
        return text + (f"; {pattern.description}" if pattern else "") + advise_shift(self.worst)


def list_costs(counters: LaunchCounters, words: Sequence[str] = ()) -> list[Cost]:
    """List the costs of a launch by unit and array, the most expensive array and its largest cost first.

    Costs of 0, uniform constants, and local memory that ptxas keeps in registers are left out. ``words`` are the texts
    of the arguments, which name the arrays.
    """
    costs_by_key: dict[tuple[object, ...], Cost] = {}
    for access in counters.machine_code_accesses():
        if not access.is_uniform_constant:
            unit = "constant addresses" if access.space == "constant" else "sectors" if access.sectors else "wavefronts"
            array = find_array_name(access, counters.arrays, words) or f"{access.space} memory"
            key = (unit, array, access.source.file, access.source.line, access.kind)
            costs_by_key.setdefault(key, Cost(unit, array, [])).accesses.append(access)
    costs = [cost for cost in costs_by_key.values() if cost.amount]
    totals = sum_costs(costs)

    def sort_key(cost: Cost) -> tuple[int, int, str, int]:
        return _UNITS.index(cost.unit), -totals[cost.unit, cost.array], cost.array, -cost.amount

    return sorted(costs, key=sort_key)


def sum_costs(costs: Iterable[Cost]) -> Counter[object]:
    """Return the amounts by unit, and by unit and array: {"sectors": 9, ("sectors", "x"): 8, ("sectors", "y"): 1}."""
    totals: Counter[object] = Counter()
    for cost in costs:
        totals[cost.unit] += cost.amount
        totals[cost.unit, cost.array] += cost.amount
    return totals


def draw_pictures(costs: Sequence[Cost]) -> dict[int, Picture]:
    """Draw the costs with the largest excess over the ideal; return up to three different pictures by cost index."""
    pictures: dict[int, Picture] = {}
    totals = sum_costs(costs)
    excesses = [(cost.amount - cost.ideal) / totals[cost.unit] for cost in costs]
    for n in sorted(range(len(costs)), key=lambda n: -excesses[n]):
        if len(pictures) == _MAX_PICTURES or excesses[n] < _MIN_EXCESS:
            break
        picture = draw_access(costs[n].worst)
        if picture is None or len(picture.now) == len(picture.best):  # the drawn request is ideal
            continue
        if picture.format_text() not in [earlier.format_text() for earlier in pictures.values()]:
            pictures[n] = picture
    return pictures


def format_costs(counters: LaunchCounters, words: Sequence[str], find_lines: FindLines) -> str:
    """Format the costs of a launch as text; empty if `list_costs` lists none."""
    costs = list_costs(counters, words)
    pictures = draw_pictures(costs)
    legend = [f"\n{LEGEND}"] if pictures else []
    return "\n".join([*_format_lines(costs, pictures, find_lines), *legend])


def _format_lines(costs: list[Cost], pictures: dict[int, Picture], find_lines: FindLines) -> Iterator[str]:
    """Yield the lines: a total per unit, a share per array, each cost with its picture, and the sums of small costs."""
    unit = array = ""
    totals, omitted = sum_costs(costs), Counter[str]()
    for n, cost in enumerate(costs):
        if cost.amount < _MIN_SHARE * totals[cost.unit]:
            omitted[cost.unit] += cost.amount
            continue
        if cost.unit != unit:
            yield _format_amount(totals[cost.unit], cost.unit)
        if (cost.unit, cost.array) != (unit, array):
            yield f"{totals[cost.unit, cost.array] / totals[cost.unit]:>5.0%}  {cost.array}"
        unit, array = cost.unit, cost.array
        source = cost.worst.source
        line_text = find_line_text(source.file, source.line, find_lines)
        yield f"{cost.amount / totals[cost.unit]:>10.0%}  {_format_place(cost)}  {line_text}".rstrip()
        yield f"            {cost.description}"
        if n in pictures:
            if len(cost.accesses) > 1:
                yield f"            the worst of {len(cost.accesses)} {cost.worst.kind} instructions:"
            yield from ("", *(f"            {row}".rstrip() for row in pictures[n].format_text().splitlines()), "")
    for unit_name, amount in omitted.items():
        yield f"       {_format_amount(amount, unit_name)} at lines with less than {_MIN_SHARE:.0%} each"


def _format_place(cost: Cost) -> str:
    """Format the source line of a cost, and up to three lines that call its inlined function."""
    source = cost.worst.source
    place = f"{Path(source.file).name}:{source.line}" if source.file else str(source)
    callers = sorted({access.source.caller for access in cost.accesses} - {""})
    if callers:
        place += f" (inlined at {', '.join(callers[:3])}{' ...' if len(callers) > 3 else ''})"
    return place
