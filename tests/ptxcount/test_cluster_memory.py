"""Shared memory of other blocks of a cluster: requests and sectors, races, limits."""

import json
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.counting.counters import KINDS
from ptxcount.report.listing import describe_cost, format_json
from ptxcount.report.totals_table import format_table
from tests.ptxcount.snippets import execute_snippet, module

LANES = np.arange(32)
_RANDOM = np.random.default_rng(4)
#: Code that loads the index %r1 of each lane's element, and the address %q8 of shared memory.
_LOAD_INDEX = "ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 4, %rd1; ld.global.u32 %r1, [%rd1]; mov.u32 %q8, s;"
#: Code that finds the address %r3 of the element in the block of rank 1, and the own rank, %r2.
_MAP_ELEMENT = (
    _LOAD_INDEX
    + " mov.u32 %r2, %cluster_ctarank; mad.lo.u32 %r1, %r1, {width}, %q8; mapa.shared::cluster.u32 %r3, %r1, 1;"
)
_SHARED = ".reg .b32 %q<9>; .shared .align 128 .b8 s[32768]; .shared .align 8 .b64 b;"
#: Bytes of an access -> suffix and registers.
_VECTOR = {4: ("u32", "%q1"), 8: ("v2.u32", "{%q1, %q2}"), 16: ("v4.u32", "{%q1, %q2, %q3, %q4}")}
#: Index of each lane's element; an element is as wide as the access.
PATTERNS = {
    "stride 1": LANES, "stride 2": 2 * LANES, "stride 8": 8 * LANES, "stride 33": 33 * LANES, "one": 0 * LANES + 3,
    "pairs": LANES // 2, "modulo 8": LANES % 8, "random": _RANDOM.integers(0, 1024, 32),
}  # fmt: skip
#: Name -> kind of access, bytes of a lane, and code. What is loaded is read: ptxas removes other loads.
ACCESSES = {
    **{f"ld {n}": ("load", n, f"ld.shared::cluster.{kind} {data}, [%r3]; mov.u32 %r5, %q1;")
       for n, (kind, data) in _VECTOR.items()},
    **{f"st {n}": ("store", n, f"st.shared::cluster.{kind} [%r3], {data};") for n, (kind, data) in _VECTOR.items()},
    "atom": ("atomic", 4, "atom.shared::cluster.add.u32 %q1, [%r3], %r0;"),
    "red": ("atomic", 4, "red.shared::cluster.add.u32 [%r3], %r0;"),
    "st.async": ("atomic", 4, "mapa.shared::cluster.u32 %q5, b, 1; st.async.shared::cluster.mbarrier::complete_tx::"
                              "bytes.u32 [%r3], %r0, [%q5];"),
}  # fmt: skip


def _run(body: str, arrays: list[Any], *, threads: int = 32, **options: Any) -> ptxcount.LaunchCounters:
    text = module(body, len(arrays), _SHARED)
    return execute_snippet(text, arrays, threads=threads, blocks=2, cluster=(2, 1, 1), **options)


def _write_remote_access(access: str) -> str:
    """Return code in which the first block accesses the second one's memory."""
    _, width, code = ACCESSES[access]
    return _MAP_ELEMENT.format(width=width) + f"setp.ne.u32 %p1, %r2, 0; @%p1 bra END; {code} END:"


def _count_sectors(kind: str, places: list[int]) -> int:
    """Count sectors like global memory; an atomic counts each as often as most lanes have one address in it."""
    if kind != "atomic":
        return len({place // 32 for place in places})
    most_lanes: dict[int, int] = {}
    for place in places:
        most_lanes[place // 32] = max(most_lanes.get(place // 32, 0), places.count(place))
    return sum(most_lanes.values())


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("access", ACCESSES)
def test_remote_accesses_count_sectors(access: str, pattern: str) -> None:
    kind, width, _ = ACCESSES[access]
    index = PATTERNS[pattern].astype(np.int32)
    counters = _run(_write_remote_access(access), [index], unwritten="off", races="off")
    totals = counters.totals()
    expected = _count_sectors(kind, (index * width).tolist())
    assert (totals[f"cluster_{kind}_requests"], totals[f"cluster_{kind}_sectors"]) == (1, expected)
    assert not any(totals[f"shared_{own_kind}_{name}"] for own_kind in KINDS for name in ("requests", "wavefronts"))


def test_own_block_counts_as_shared_memory() -> None:
    """In both blocks, even lanes access block 0 and odd lanes block 1: a warp has a request to either."""
    body = f"{_LOAD_INDEX} and.b32 %r4, %r0, 1; mapa.shared::cluster.u32 %r3, %q8, %r4;"
    body += "ld.shared::cluster.u32 %r5, [%r3]; mov.u32 %r4, %r5;"
    totals = _run(body, [np.zeros(32, np.int32)], unwritten="off").totals()
    assert (totals["shared_load_requests"], totals["cluster_load_requests"], totals["cluster_load_sectors"]) == (2,) * 3


def _count_distributed_loads() -> ptxcount.LaunchCounters:
    return _run(_write_remote_access("ld 4"), [PATTERNS["stride 8"].astype(np.int32)], unwritten="off")


def test_listing_names_distributed_memory() -> None:
    counters = _count_distributed_loads()
    (access,) = [access for access in counters.accesses if access.space == "cluster"]
    assert describe_cost(access) == "load: distributed shared memory, 32.00 sectors per request, ideal 4.00"
    assert "cluster" in format_table(counters)


def test_json_of_distributed_memory_follows_the_schema() -> None:
    schema = json.loads((files("ptxcount") / "count.schema.json").read_text(encoding="utf-8"))
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(format_json(_count_distributed_loads())), schema)


_MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
#: Code that finds the own rank, %r2, and the address %r3 of the first word of the other block.
_FIND_OTHER = (
    "mov.u32 %q8, s; mov.u32 %r2, %cluster_ctarank; xor.b32 %r4, %r2, 1; mapa.shared::cluster.u32 %r3, %q8, %r4;"
)
_STORE_OWN, _LOAD_OTHER = "st.shared.u32 [s], %r2;", "ld.shared::cluster.u32 %r5, [%r3];"
_FIRST_STORES_OTHER = "setp.ne.u32 %p1, %r2, 0; @%p1 bra END; st.shared::cluster.u32 [%r3], 5; END:"
_FIND_FIRST = "mapa.shared::cluster.u32 %r3, %q8, 0;"
#: Code after `_FIND_OTHER` of one thread in each of two blocks, and True if it races.
RACES = {
    "barrier of the cluster": (f"{_STORE_OWN} {_MEET} {_LOAD_OTHER}", False),
    "no barrier": (f"{_STORE_OWN} {_LOAD_OTHER}", True),
    "barrier of the block": (f"{_STORE_OWN} bar.sync 0; {_LOAD_OTHER}", True),
    "no barrier after the load": (f"{_STORE_OWN} {_MEET} {_LOAD_OTHER} st.shared.u32 [s], 7;", True),
    "a barrier after the load": (f"{_STORE_OWN} {_MEET} {_LOAD_OTHER} {_MEET} st.shared.u32 [s], 7;", False),
    "only loads": (f"{_STORE_OWN} {_MEET} {_LOAD_OTHER} ld.shared.u32 %r6, [s];", False),
    "atomics": (f"{_STORE_OWN} {_MEET} red.shared::cluster.add.u32 [%r3], 1; red.shared.add.u32 [s], 1;", False),
    "store and atomic": (f"{_STORE_OWN} red.shared::cluster.add.u32 [%r3], 1;", True),
    "load and store of another block": (f"{_STORE_OWN} {_MEET} {_FIRST_STORES_OTHER} ld.shared.u32 %r6, [s];", True),
    "another address": (f"{_STORE_OWN} {_MEET} {_FIRST_STORES_OTHER} ld.shared.u32 %r6, [s+4];", False),
    "unequal stores to one address": (f"{_MEET} {_FIND_FIRST} st.shared::cluster.u32 [%r3], %r2;", True),
    "equal stores to one address": (f"{_MEET} {_FIND_FIRST} st.shared::cluster.u32 [%r3], 4;", False),
}


@pytest.mark.parametrize("case", RACES)
def test_unordered_accesses_in_a_cluster_race(case: str) -> None:
    body, is_race = RACES[case]
    counters = _run(f"{_FIND_OTHER} {body}", [], threads=1, unwritten="off")
    races = [finding.message for finding in counters.findings if finding.code == "shared-race"]
    assert bool(races) == is_race
    assert all("of the cluster: no synchronization between them" in message for message in races)
