"""Costs of a launch: order of arrays and lines, patterns of addresses, pictures of requests."""

import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from ptxcount import count
from ptxcount.cli.argument_words import make_arguments
from ptxcount.counting.counters import Access, LaunchCounters
from ptxcount.counting.samples import EXECUTIONS
from ptxcount.counting.transactions import count_load_wavefronts, count_store_wavefronts
from ptxcount.report.costs import draw_pictures, format_costs, list_costs
from ptxcount.report.patterns import find_array_name, find_pattern
from ptxcount.report.picture import Picture, draw_access
from ptxcount.util.errors import Source
from tests.ptxcount.commands import read_output
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
#: Array, line, kind, sectors or wavefronts (None: they depend on the drawn permutation), the fewest possible, and
#: pattern, in the order of the listing.
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
    for row, expected in zip(rows, COSTS, strict=True):
        assert row == expected[:5] or (expected[3] is None and row[:3] == expected[:3] and row[4] == expected[4])
    assert [cost.description.rpartition("; ")[2] for cost in costs] == [row[5] for row in COSTS]


def test_one_sector_is_singular() -> None:
    counters = _counters(1)
    assert format_costs(counters, [], lambda name: None).splitlines()[0] == "1 sector"
    assert list_costs(counters)[0].description.startswith("load: 1 sector per request; ")


def test_listing_and_page_have_the_same_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, page = tmp_path / "k.cu", tmp_path / "page.html"
    source.write_text(SOURCE.replace("in[0] +", "in[0] +\t/* <b>\x1b[31m */"))
    out = read_output(capsys, source, "--grid", "1", "--block", "32,32", *WORDS, "--html", page)
    lead = out[: out.index("\nglobal ")]  # the costs, before the tables
    assert PICTURE in lead
    assert [int(line) for line in re.findall(r"k\.cu:(\d+)", lead)] == [row[1] for row in COSTS]
    assert re.search(r"^  \d+%  in\n +\d+%  k\.cu:4  tile\[y\]\[x\] = in\[32 \* x \+ y\];$", lead, re.M)
    assert "in[0] +\t/* <b>\\x1b[31m */" in lead
    html = page.read_text()
    assert unescape(re.search("<pre>(.*)</pre>", re.sub("</?mark>", "", html), re.S)[1]) == out.rstrip("\n")  # type: ignore[index]
    marked = [unescape(line).split()[1] for line in re.findall("<mark>(.*)</mark>", html)]
    assert [word for word in marked if word != "^"] == ["4", "6", "7"]  # lines with a wasteful access


def draw_request(space: str, width: int, addresses: np.ndarray, lanes: np.ndarray) -> tuple[Access, Picture]:
    """Record one load request; return its access and its picture."""
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
    lanes[seed] = True  # one at least
    _, picture = draw_request("global", width, addresses, lanes)
    sectors = {*(addresses[lanes] // 32)}
    rows = {tuple(np.flatnonzero(lanes & (addresses // 32 == sector))) for sector in sectors}
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
    lanes[seed] = True  # one at least
    addresses = random.permutation(4 << seed + 3)[:32] * width  # no two lanes share an address
    access, picture = draw_request("shared", width, addresses, lanes)
    words_per_bank = []
    for lanes_per_wavefront in (128 // max(width, 4), 256 // max(width, 4)):  # twice as many if pairs of lanes agree
        words = np.zeros(32, int)
        for first in range(0, 32, lanes_per_wavefront):
            group = [lane for lane in range(first, min(first + lanes_per_wavefront, 32)) if lanes[lane]]
            for word in {int(addresses[lane]) // 4 + n for lane in group for n in range(max(width // 4, 1))}:
                words[word % 32] += 1
        words_per_bank.append(words.tolist())
    assert len(picture.now) == access.wavefronts
    assert picture.now.sum(axis=0).tolist() in words_per_bank
    assert picture.best.sum() == picture.now.sum()
    assert len(picture.best) <= len(picture.now)


@pytest.mark.parametrize(("place", "name"), [(0, "a"), (127, "a"), (128, "_b"), (255, "_b"), (256, "")])
def test_shared_address_is_in_its_array(place: int, name: str) -> None:
    access = Access(Source(1), "shared", "load", 1)
    access.record(np.full((1, 1), place), np.ones((1, 1), bool), (1, 32))
    assert find_array_name(access, [(0, 128, "a"), (128, 128, "_b")]) == name


LANES = np.arange(32)
HOLES, NEAR = np.isin(LANES % 5, (0, 1, 3)), "neighbouring lanes at neighbouring elements"
#: Addresses of lanes; number of active lanes, or their mask; pattern, or None. Elements have 4 bytes. At least 70 %
#: of the distances between neighbouring lanes must be equal for a stride.
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
    (LANES * 128 + LANES // 8 * 64, 32, "neighbouring lanes 128 bytes apart"),  # 28 of 31 distances
    (LANES * 128 + LANES // 3 * 64, 32, "irregular addresses"),  # 21 of 31 distances are 128 bytes
    (LANES * 128, 7, None),  # too few lanes
    (LANES // 2 * 100 + LANES % 2 * 4, 32, "groups of 2 lanes at consecutive elements"),
    (LANES % 16 * 4 + LANES // 16 * 80, 32, "groups of 16 lanes at consecutive elements"),
    (LANES * 8, LANES % 2 == 0, "active lanes 16 bytes apart"),
    (LANES * 2, LANES % 2 == 0, "active lanes at neighbouring elements"),
    (LANES * 4, LANES % 4 < 2, "groups of 2 lanes at consecutive elements"),
    (LANES * 4 + LANES // 3 * 96, 32, "groups of 2.9 lanes on average at consecutive elements"),  # ten of 3, one of 2
    (LANES // 16 * 64, 32, "2 addresses per sampled request, 16 lanes each"),
    (LANES // 4 * 8, 32, "8 addresses per sampled request, 4 lanes each"),
    ((LANES ^ 1) * 4, 32, "lanes at neighbouring elements in another order"),
]  # fmt: skip


@pytest.mark.parametrize(("addresses", "active", "words"), PATTERNS)
def test_pattern_describes_addresses(addresses: np.ndarray, active: int | np.ndarray, words: str | None) -> None:
    access = Access(Source(1), "global", "load", 4)
    is_active = active > LANES if isinstance(active, int) else active
    access.record(addresses[None], is_active[None], (1, 32))
    pattern = find_pattern(access)
    assert (pattern.description if pattern else None) == words


def test_pattern_is_that_of_the_samples() -> None:
    """The first requests, of which there are samples, start at a sector; a later one does not."""
    access = Access(Source(1), "global", "load", 4)
    for start in (*[0] * EXECUTIONS, 4):
        access.record(LANES[None] * 4 + start, np.ones((1, 32), bool), (1, 32))
    pattern = find_pattern(access)
    assert pattern is not None
    assert pattern.description == f"{NEAR}; requests without samples take more sectors"


def _counters(*strides: int) -> LaunchCounters:
    """Record one load request a line. A stride of n bytes needs n sectors: 32 lanes, 32 bytes each."""
    accesses = [Access(Source(n, "k.cu", n), "global", "load", 4) for n in range(1, 1 + len(strides))]
    for access, stride in zip(accesses, strides, strict=True):
        access.record(LANES[None] * stride, np.ones((1, 32), bool), (1, 32))
    return LaunchCounters(32, accesses=accesses)


def test_most_wasteful_accesses_have_pictures() -> None:
    assert draw_pictures(list_costs(_counters(4, 4))) == {}  # ideal
    assert len(draw_pictures(list_costs(_counters(4, 32, 32, 16)))) == 2  # of equal pictures, one is drawn
    assert len(draw_pictures(list_costs(_counters(*range(8, 33, 4))))) == 3  # the limit
    shown = format_costs(_counters(*[32] * 20, 4), [], lambda name: None)  # 640 sectors, and 4 at line 21
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


@pytest.mark.parametrize(("lines", "is_worst_of_2"), [((1, 2), False), ((2, 2), True)])
def test_loads_of_a_line_share_a_picture(lines: tuple[int, int], is_worst_of_2: bool) -> None:
    counters = _counters(8, 16)
    for access, line in zip(counters.accesses, lines, strict=True):
        access.source = Source(1, "k.cu", line)
    text = format_costs(counters, [], lambda name: None)
    assert ("the worst of 2 load instructions:" in text) is is_worst_of_2


def test_picture_shows_the_most_frequent_request() -> None:
    access = Access(Source(1), "global", "load", 4)
    for step in (4, 128, 128, 128):  # bytes between lanes: 4 sectors, or one for each lane
        access.record(LANES[None] * step, np.ones((1, 32), bool), (1, 32))
    picture = draw_access(access)
    assert picture is not None
    assert len(picture.now) == 32


def test_pairs_of_lanes_share_a_wavefront() -> None:
    _, picture = draw_request("shared", 8, LANES // 2 * 8, LANES >= 0)
    assert (len(picture.now), len(picture.best)) == (1, 1)


@pytest.mark.parametrize(("is_matrix", "wavefronts"), [(False, 2), (True, 4)])
def test_ldmatrix_has_a_wavefront_for_eight_rows(is_matrix: bool, wavefronts: int) -> None:
    """Pairs of lanes have one row of 16 bytes. A load merges them: 16 lanes a wavefront. ldmatrix takes 8 lanes."""
    access = Access(Source(1), "shared", "load", 16, is_matrix=is_matrix)
    access.record(LANES[None] // 2 * 16, np.ones((1, 32), bool), (1, 32))
    picture = draw_access(access)
    assert picture is not None
    assert access.wavefronts == len(picture.now) == wavefronts
    assert access.wavefront_rule is (count_store_wavefronts if is_matrix else count_load_wavefronts)


def test_ideal_of_fetches_is_at_most_their_sectors() -> None:
    """The lanes need 512 bytes, as many as 16 sectors. But lanes that fetch the same texels share 8 sectors."""
    access = Access(Source(1), "texture", "load", 16)
    access.add_untraced(requests=8, sectors=8, useful_bytes=32 * 16)
    (cost,) = list_costs(LaunchCounters(32, accesses=[access]))
    assert (cost.amount, cost.ideal) == (8, 8)


#: Accesses to local memory; the load's offset is known to ptxas, or not.
LOCAL = """
ld.param.u64 %rd1, [p0]; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2;
mov.u64 %rd3, array; and.b64 %rd4, %rd2, 252; add.u64 %rd5, %rd3, %rd4;
st.local.u32 [%rd3], %r0; st.local.u32 [%rd3+4], %r0; st.local.u32 [%rd3+8], %r0; st.local.u32 [%rd3+12], %r0;
ld.local.u32 %r2, [{}]; st.global.u32 [%rd1], %r2;
"""


#: Sectors of the store to global memory; of 4 stores and 1 load to one word of each thread; and of such stores with a
#: load of another word for each of 32 threads.
GLOBAL, LOCAL_WORDS, SCATTERED = 4, (4 + 1) * 4, 4 * 4 + 32


@pytest.mark.parametrize(("place", "has_nvcc", "sectors", "caveat"), [
    ("%rd3+4", True, GLOBAL, "ptxas keeps all of it in registers"),
    ("%rd3+4", False, GLOBAL + LOCAL_WORDS, "ptxas may keep it in registers"),
    ("%rd5", True, GLOBAL + SCATTERED, "ptxas keeps 256 bytes per thread there"),
])  # fmt: skip
def test_costs_include_local_memory(
    place: str, has_nvcc: bool, sectors: int, caveat: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if not has_nvcc:
        monkeypatch.setattr("ptxcount.source.ptxas.assemble", lambda *_: {})
    file = tmp_path / "local.ptx"
    file.write_text(module(LOCAL.format(place), 1, ".local .align 4 .b8 array[256];"))
    _, begin, *tables = read_output(capsys, file, "--grid", "1", "--block", "32", "out=uint32[32]").split("\n\n")
    table = next(part for part in tables if part.startswith("local "))
    assert begin.startswith(f"{sectors} sectors\n")
    assert ("local memory" in begin) is ("all of it" not in caveat)
    assert table.splitlines()[2].split(maxsplit=5)[:3] == ["store", "4", "16"]  # requests and sectors
    assert table.splitlines()[2].endswith(f"  {caveat}")
