"""Shuffles, votes, matches and reductions of a partly active warp, as on an H200."""

import json
from pathlib import Path

import numpy as np
import pytest

from ptxcount.engine import uniformity
from tests.ptxcount import lanes
from tests.ptxcount.snippets import evaluate, execute_snippet, module

READ = json.loads(Path("tests/data/lanes-h200.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize(("operation", "group"), lanes.CASES)
def test_results_as_on_an_h200(operation: str, group: str) -> None:
    text = lanes.text(operation, group)
    out = np.full((32, 2), lanes.UNTOUCHED, np.uint32)
    counters = execute_snippet(text, [out])
    reads_idle = operation.startswith("shfl") and 0 in out[:, 0].tolist()  # an inactive lane's value is 0
    assert [finding.code for finding in counters.findings] == (["inactive-lane"] if reads_idle else [])
    reading = READ.get(f"{operation}; {group}")
    if reading is None:
        pytest.skip("lanes-h200.json lacks this case; on an H200, tests/gpu/test_instructions.py prints what to add")
    assert out.tolist() == reading


def test_uniformity_of_collectives_is_known() -> None:
    opcodes = {code.split("; ")[-1].split(".")[0] for code in lanes.OPERATIONS.values()}
    assert opcodes - {"shfl"} <= uniformity._UNIFORM_OPCODES | uniformity._DIVERGENT_OPCODES


def test_every_measured_case_is_tested() -> None:
    assert READ.keys() <= {f"{operation}; {group}" for operation, group in lanes.CASES}


@pytest.mark.parametrize(("group", "leader"), [("all lanes", 0), ("the first 8", 999), ("two groups", 8)])
def test_elect_takes_the_lowest_active_lane(group: str, leader: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``leader`` is the result of lanes 8 to 31, 999 without an election; lanes 0 to 7 elect lane 0."""
    monkeypatch.setitem(lanes.OPERATIONS, "elect", "elect.sync %r3|%p2, {mask};")
    out = np.zeros((32, 2), np.uint32)
    execute_snippet(lanes.text("elect", group), [out])
    elected = [0] * 8 + [leader] * 24
    assert out.tolist() == [[elected[lane], elected[lane] == lane] for lane in range(32)]


@pytest.mark.parametrize("kind", ["u32", "s32"])
@pytest.mark.parametrize("name", ["add", "min", "max", "and", "or", "xor"])
def test_redux_ignores_inactive_lanes(name: str, kind: str) -> None:
    reduce = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
              "xor": np.bitwise_xor}[name]  # fmt: skip
    for first in (-9, 5, -(2**31), 2**31 - 20):  # 20 active lanes; also numbers at each limit of s32
        operand = (first + np.arange(20)).astype(np.int64).astype(f"{kind[0].replace('s', 'i')}4")
        word = "b32" if name in ("and", "or", "xor") else kind
        result = evaluate(f"redux.sync.{name}.{word} {{d}}, {{a}}, -1", [operand], operand.dtype)
        assert {*result.tolist()} == {int(reduce.reduce(operand, dtype=operand.dtype))}


def test_vote_takes_suffixes_in_either_order() -> None:
    """`lanes.OPERATIONS` has ``vote.sync.ballot``."""
    got = evaluate("vote.ballot.sync.b32 {d}, {a}, -1", [np.arange(64) % 3 == 0], np.uint32)
    ballots = [sum(1 << i for i in range(32) if (first + i) % 3 == 0) for first in (0, 32)]
    assert got.tolist() == np.repeat(ballots, 32).tolist()


def test_finding_names_the_inactive_lane() -> None:
    text = lanes.text("shfl down 1 0x1f", "the first 8")
    (finding,) = execute_snippet(text, [np.zeros((32, 2), np.uint32)]).findings
    assert "shfl" in text.splitlines()[finding.source.ptx_line - 1]
    assert finding.message == (
        "lane 7 of warp 0 reads from lane 8, which is inactive: 0 here, undefined in CUDA; let lane 8 execute this "
        "instruction, too"
    )
    assert finding.times == 1


def test_elect_while_others_poll() -> None:
    """Warp 1 polls an mbarrier for four arrivals; warp 0 elects lane 0 four times, which adds 1 twice and arrives.

    Between the additions is a branch that no thread takes.
    """
    rounds = "".join(
        f"elect.sync %r1|%p3, -1; @!%p3 bra SKIP{k}; red.global.add.u32 [%rd1], 1; setp.eq.u32 %p4, %r0, 99; "
        f"@%p4 bra NEXT{k}; red.global.add.u32 [%rd1], 1; NEXT{k}: mbarrier.arrive.shared.b64 _, [bar]; SKIP{k}: "
        for k in range(4)
    )
    body = (
        "ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 4, %rd1; setp.eq.u32 %p1, %r0, 0; "
        "@%p1 mbarrier.init.shared.b64 [bar], 4; bar.sync 0; setp.ge.u32 %p1, %r0, 32; @%p1 bra POLL; "
        f"{rounds} bra DONE; POLL: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra POLL; DONE:"
    )
    out = np.zeros(64, np.uint32)
    execute_snippet(module(body, 1, ".shared .align 8 .b64 bar;"), [out], threads=64)
    assert out.tolist() == [4 * 2, *[0] * 63]


def test_elect_is_one_instruction() -> None:
    texts = [module(f"mov.u32 %r4, -1; {code} ret;", 0) for code in ("", "elect.sync %r1|%p1, %r4;")]
    without, counted = (execute_snippet(text, []).thread_instructions for text in texts)
    assert counted - without == 32  # one for each thread
