"""Costs of a launch: order of arrays and lines, patterns of addresses, pictures of requests."""

import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from ptxcount import count
from ptxcount.cli.argument_words import make_arguments
from ptxcount.command_line import main
from ptxcount.counting.counters import Access, LaunchCounters
from ptxcount.counting.transactions import count_load_wavefronts, count_store_wavefronts
from ptxcount.report.costs import draw_pictures, format_costs, list_costs
from ptxcount.report.patterns import find_array_name, find_pattern
from ptxcount.report.picture import Picture, draw_access
from ptxcount.util.errors import Source
from tests.ptxcount.snippets import module

SOURCE = """\
__global__ void k(float* out, const float* in, const int* at) {
    __shared__ float tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[32 * x + y];
    __syncthreads();
    out[32 * y + x] = tile[x][y] + in[0] +
        in[at[32 * y + x]];
    out[32 * (31 - y) + (31 - x)] = 1;
}
"""
WORDS = ["out=float32[1024]", "in=float32[1024]", "at=int32[1024]=permutation(1)"]
#: Array, line, kind, sectors or wavefronts, the fewest possible, and pattern, in the order of the listing.
COSTS = [
    ("in", 4, "load", 1024, 128, "neighbouring lanes 128 bytes apart"),
    ("in", 7, "load", None, 128, "irregular addresses"),
    ("in", 6, "load", 32, 32, "all lanes at one address"),
    ("out", 6, "store", 128, 128, "neighbouring lanes at neighbouring elements"),
    ("out", 8, "store", 128, 128, "neighbouring lanes at neighbouring elements in descending order"),
    ("at", 7, "load", 128, 128, "neighbouring lanes at neighbouring elements"),
    ("tile", 6, "load", 1024, 32, "neighbouring lanes 128 bytes apart"),
    ("tile", 4, "store", 32, 32, "neighbouring lanes at neighbouring elements"),
]
PICTURE = """\
            now: 32 sectors                     at best: 4 sectors
            █·······························    ████████························
            ·█······························    ········████████················
            ··█·····························    ················████████········
            ···█····························    ························████████
            ····█···························
            ·····█··························
            ⋮ 25 more
            ·······························█
"""


def test_costly_arrays_come_first() -> None:
    costs = list_costs(count(SOURCE, "k", 1, (32, 32), make_arguments(WORDS)), WORDS)
    rows = [(cost.array, cost.worst.source.line, cost.worst.kind, cost.amount, cost.ideal) for cost in costs]
    expected = [row[:5] for row in COSTS]
    assert [row if row[1] != 7 or row[0] != "in" else (*row[:3], None, row[4]) for row in rows] == expected
    assert [cost.description.rpartition("; ")[2] for cost in costs] == [row[5] for row in COSTS]
    assert costs[2].description.startswith("load: 1 sector per request; ")
    assert format_costs(_counters(1), [], lambda name: None).splitlines()[0] == "1 sector"


def test_page_has_the_text_of_the_listing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, page = tmp_path / "k.cu", tmp_path / "page.html"
    source.write_text(SOURCE.replace("in[0] +", "in[0] +\t/* <b>\x1b[31m */"))
    assert main([str(source), "--grid", "1", "--block", "32,32", *WORDS, "--html", str(page)]) == 0
    out = capsys.readouterr().out
    lead = out[: out.index("\nglobal ")]
    assert PICTURE in lead
    assert [int(line) for line in re.findall(r"k\.cu:(\d+)", lead)] == [row[1] for row in COSTS]
    assert re.search(r"^  (\d+)%  in\n +\1?\d*%  k\.cu:4  tile\[y\]\[x\] = in\[32 \* x \+ y\];$", lead, re.M)
    assert "in[0] +\t/* <b>\\x1b[31m */" in lead
    html = page.read_text()
    assert unescape(re.search("<pre>(.*)</pre>", re.sub("</?mark>", "", html), re.S)[1]) == out.rstrip("\n")  # type: ignore[index]
    marked = [unescape(line).split()[1] for line in re.findall("<mark>(.*)</mark>", html)]
    assert [word for word in marked if word != "^"] == ["4", "6", "7"]


def _access(space: str, width: int, addresses: np.ndarray, lanes: np.ndarray) -> tuple[Access, Picture]:
    access = Access(Source(1), space, "load", width)
    access.record(addresses[None], lanes[None], (1, 32))
    picture = draw_access(access)
    assert picture is not None
    return access, picture


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("seed", range(8))
def test_picture_has_a_row_for_each_sector(width: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    addresses = random.integers(0, 4 << seed, 32) * width
    lanes = random.random(32) < (seed + 1) / 8
    lanes[seed] = True
    _, picture = _access("global", width, addresses, lanes)
    rows = {tuple(np.flatnonzero(lanes & (addresses // 32 == sector))) for sector in {*(addresses[lanes] // 32)}}
    assert {tuple(np.flatnonzero(row)) for row in picture.now} == rows
    assert len(picture.now) == len(rows)
    assert len(picture.best) == -(-len({*addresses[lanes]}) * width // 32)
    assert (picture.best.sum(axis=0) == lanes).all()
    order = list(dict.fromkeys(addresses[lanes].tolist()))  # best case: the first lane's data lies first
    assert all(picture.best[order.index(addresses[lane]) * width // 32, lane] for lane in np.flatnonzero(lanes))


@pytest.mark.parametrize("width", [1, 4, 8, 16])
@pytest.mark.parametrize("seed", range(8))
def test_picture_has_a_column_for_each_bank(width: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    lanes = random.random(32) < (seed + 1) / 8
    lanes[seed] = True
    addresses = random.permutation(4 << seed + 3)[:32] * width  # no two lanes share an address
    access, picture = _access("shared", width, addresses, lanes)
    heights = []
    for together in (128 // max(width, 4), 256 // max(width, 4)):  # twice as many where pairs of lanes agree
        height = np.zeros(32, int)
        for first in range(0, 32, together):
            group = [lane for lane in range(first, min(first + together, 32)) if lanes[lane]]
            words = {int(addresses[lane]) // 4 + word for lane in group for word in range(max(width // 4, 1))}
            for word in words:
                height[word % 32] += 1
        heights.append(height.tolist())
    assert len(picture.now) == access.wavefronts
    assert picture.now.sum(axis=0).tolist() in heights
    assert picture.best.sum() == picture.now.sum()
    assert len(picture.best) <= len(picture.now)


@pytest.mark.parametrize(("place", "name"), [(0, "a"), (127, "a"), (128, "_b"), (255, "_b"), (256, "")])
def test_shared_address_is_in_its_array(place: int, name: str) -> None:
    access = Access(Source(1), "shared", "load", 1)
    access.record(np.full((1, 1), place), np.ones((1, 1), bool), (1, 32))
    assert find_array_name(access, [(0, 128, "a"), (128, 128, "_b")]) == name


LANES = np.arange(32)
HOLES, NEAR = np.isin(LANES % 5, (0, 1, 3)), "neighbouring lanes at neighbouring elements"
#: Addresses of lanes; number of active lanes, or their mask; pattern, or None.
PATTERNS = [
    (LANES * 0, 32, "all lanes at one address"), (LANES * 4, 8, NEAR),
    (LANES[::-1] * 4, 32, f"{NEAR} in descending order"), (LANES * 4 + 4, 32, f"{NEAR}; warps start inside a sector"),
    (LANES * 4, HOLES & (LANES > 7), f"{NEAR}; inactive lanes leave gaps"),
    (LANES * 4, (LANES >= 4) & (LANES < 12), f"{NEAR}; inactive lanes leave gaps"),
    (LANES[::-1] * 4, HOLES & (LANES > 7), f"{NEAR} in descending order; inactive lanes leave gaps"),
    (LANES[::-1] * 4 + 8, HOLES, f"{NEAR} in descending order; warps start inside a sector"),
    (LANES * 4 + 12, HOLES, f"{NEAR}; warps start inside a sector"),
    (LANES * 2 + 12, LANES % 2 == 0, "active lanes at neighbouring elements; warps start inside a sector"),
    (LANES * 128, 32, "neighbouring lanes 128 bytes apart"),
    (LANES * 128 + LANES // 8 * 64, 32, "neighbouring lanes 128 bytes apart"),
    (LANES * 128 + LANES // 3 * 64, 32, "irregular addresses"), (LANES * 128, 7, None),
    (LANES // 2 * 100 + LANES % 2 * 4, 32, "groups of 2 lanes at consecutive elements"),
    (LANES * 8, LANES % 2 == 0, "active lanes 16 bytes apart"),
    (LANES * 2, LANES % 2 == 0, "active lanes at neighbouring elements"),
    (LANES * 4, LANES % 4 < 2, "groups of 2 lanes at consecutive elements"),
    (LANES // 16 * 64, 32, "sampled: 2 addresses, 16 lanes each"),
    (LANES // 4 * 8, 32, "sampled: 8 addresses, 4 lanes each"),
    ((LANES ^ 1) * 4, 32, "lanes at neighbouring elements in another order"),
]  # fmt: skip


@pytest.mark.parametrize(("addresses", "active", "words"), PATTERNS)
def test_pattern_needs_8_lanes(addresses: np.ndarray, active: int | np.ndarray, words: str | None) -> None:
    access = Access(Source(1), "global", "load", 4)
    access.record(addresses[None], (active > LANES if isinstance(active, int) else active)[None], (1, 32))
    pattern = find_pattern(access)
    assert (pattern.description if pattern else None) == words


def _counters(*sectors: int) -> LaunchCounters:
    """Record one access a line; numbers are the sectors per request of the accesses."""
    accesses = [Access(Source(n, "k.cu", n), "global", "load", 4) for n in range(1, 1 + len(sectors))]
    for access, number in zip(accesses, sectors, strict=True):
        access.record(LANES[None] * number, np.ones((1, 32), bool), (1, 32))
    return LaunchCounters(32, accesses=accesses)


def test_most_wasteful_accesses_have_pictures() -> None:
    assert draw_pictures(list_costs(_counters(4, 4))) == {}
    assert len(draw_pictures(list_costs(_counters(4, 32, 32, 16)))) == 2
    assert len(draw_pictures(list_costs(_counters(*range(8, 33, 4))))) == 3
    shown = format_costs(_counters(*[32] * 20, 4), [], lambda name: None)
    assert "       4 sectors at lines with less than 1% each" in shown
    assert "k.cu:21" not in shown


def test_no_picture_of_an_ideal_request() -> None:
    """Seven of eight requests need one sector, so the typical one is ideal: pictures of now and at best are equal.

    The last request reads bytes 28 to 43, which are in two sectors.
    """
    access = Access(Source(1, "k.cu", 1), "global", "load", 4)
    for start in (*[0] * 7, 28):
        access.record(start + LANES[None] // 8 * 4, np.ones((1, 32), bool), (1, 32))
    (cost,) = list_costs(LaunchCounters(32, accesses=[access]))
    assert (cost.amount, cost.ideal) == (9, 8)
    assert draw_pictures([cost]) == {}


@pytest.mark.parametrize("count", [1, 2])
def test_picture_of_several_loads_is_the_worst(count: int) -> None:
    counters = _counters(8, 16)
    counters.accesses[0].source = Source(1, "k.cu", 2 if count == 2 else 1)
    text = format_costs(counters, [], lambda name: None)
    assert text.count("the worst of 2 load instructions:") == count - 1


def test_picture_shows_the_most_frequent_request() -> None:
    access = Access(Source(1), "global", "load", 4)
    for step in (4, 128, 128, 128):
        access.record(LANES[None] * step, np.ones((1, 32), bool), (1, 32))
    picture = draw_access(access)
    assert picture is not None
    assert len(picture.now) == 32
    _, wide = _access("shared", 8, LANES // 2 * 8, LANES >= 0)
    assert (len(wide.now), len(wide.best)) == (1, 1)


@pytest.mark.parametrize(("is_matrix", "wavefronts"), [(False, 2), (True, 4)])
def test_ldmatrix_has_a_wavefront_for_eight_rows(is_matrix: bool, wavefronts: int) -> None:
    access = Access(Source(1), "shared", "load", 16, is_matrix=is_matrix)
    access.record(LANES[None] // 2 * 16, np.ones((1, 32), bool), (1, 32))
    picture = draw_access(access)
    assert picture is not None
    assert access.wavefronts == len(picture.now) == wavefronts
    assert access.wavefront_rule is (count_store_wavefronts if is_matrix else count_load_wavefronts)


def test_ideal_of_fetches_is_at_most_their_sectors() -> None:
    access = Access(Source(1), "texture", "load", 16)
    access.add_untraced(8, 8, 32 * 16)
    (cost,) = list_costs(LaunchCounters(32, accesses=[access]))
    assert (cost.amount, cost.ideal) == (8, 8)


#: Accesses to local memory; the load's offset is known to ptxas, or not.
LOCAL = """
ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2;
mov.u64 %rd3, array; and.b64 %rd4, %rd2, 252; add.u64 %rd5, %rd3, %rd4;
st.local.u32 [%rd3], %r0; st.local.u32 [%rd3+4], %r0; st.local.u32 [%rd3+8], %r0; st.local.u32 [%rd3+12], %r0;
ld.local.u32 %r2, [{}]; st.global.u32 [%rd1], %r2;
"""


@pytest.mark.parametrize(("place", "has_nvcc", "first", "caveat"), [
    ("%rd3+4", True, "4 sectors", "ptxas keeps all of it in registers"),
    ("%rd3+4", False, "24 sectors", "ptxas may keep it in registers"),
    ("%rd5", True, "52 sectors", "ptxas keeps 256 bytes per thread there"),
])  # fmt: skip
def test_costs_include_local_memory(
    place: str, has_nvcc: bool, first: str, caveat: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if not has_nvcc:
        monkeypatch.setattr("ptxcount.source.ptxas.assemble", lambda *_: {})
    file = tmp_path / "local.ptx"
    file.write_text(module(LOCAL.format(place), 1, ".local .align 4 .b8 array[256];"))
    assert main([str(file), "--grid", "1", "--block", "32", "out=uint32[32]"]) == 0
    _, begin, *tables = capsys.readouterr().out.split("\n\n")
    table = next(part for part in tables if part.startswith("local "))
    assert begin.startswith(f"{first}\n")
    assert ("local memory" in begin) is ("all of it" not in caveat)
    assert table.splitlines()[2].split(maxsplit=5)[:3] == ["store", "4", "16"]
    assert table.splitlines()[2].endswith(f"  {caveat}")


def test_two_rows_are_groups_of_lanes() -> None:
    body = """
        ld.param.u64 %rd1, [p0]; and.b32 %r1, %r0, 15; shr.u32 %r2, %r0, 4; mad.lo.u32 %r3, %r2, 20, %r1;
        mad.wide.u32 %rd2, %r3, 4, %rd1; ld.global.u32 %r4, [%rd2]; st.global.u32 [%rd2], %r4;
    """
    counters = count(module(body, 1), None, 1, 32, [np.zeros(64, np.uint32)])
    pattern = find_pattern(counters.accesses[0])
    assert pattern is not None
    assert pattern.description == "groups of 16 lanes at consecutive elements"
