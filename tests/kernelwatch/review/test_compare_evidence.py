"""Facts that affect the verdict on a time: machine code, the plain copy, throttling, GPUs and noise."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from kernelwatch.review.judge import add_doubts
from kernelwatch.review.pairing import Pair, is_code_unchanged
from kernelwatch.review.thresholds import MIN_CHANGES
from kernelwatch.review.verdict import Judgement, Reason, ReasonKind, Verdict
from kernelwatch.show.site.overview import ShownMachine
from kernelwatch.store.measurements import load_commit
from kernelwatch.store.results import History
from kernelwatch.suite import launch_facts
from kernelwatch.workflow.load_review import load_thresholds
from tests.stored import BASE, COUNT, HEAD, RUN, TIME, Suite, pair, review_as_json, samples, write, write_lines

COPY_RATIO = "track_control.X.track_copy_ratio"
NAME = f"{TIME}(one)"
KERNEL = "offset_copy float32 -Xptxas -O3"
HELD = "the GPU was throttled or shared in"

SLOW, UNDECIDED, SAME = Verdict.SLOWER.value, Verdict.UNDECIDED.value, Verdict.SAME.value


def _suite(factor: float, copies: tuple[float, float | None] | None) -> Suite:
    suite: Suite = {BASE: {TIME: {"one": samples(1e-3)}}, HEAD: {TIME: {"one": samples(1e-3 * factor, seed=1)}}}
    if copies is not None:
        for commit, ratio in zip((BASE, HEAD), copies, strict=True):
            suite[commit] |= {COPY_RATIO: {"one": samples(ratio)}} if ratio else {}
    return suite


#: Name of the only kernel in `cubins.jsonl`.
CUBIN = "offset_copy, float32, -Xptxas -O3"


def _write_records(root: Path, runs: list[dict[str, Any]], hashes: Sequence[str] = "") -> Path:
    """Write run records and the cubin hashes of base and head; return the machine's folder."""
    write_lines(root / "results" / "gpu" / "runs.jsonl", *runs)
    both = zip((BASE, HEAD), hashes, strict=False)
    lines = ({"commit": commit, "arch": "sm_90", "cubins": {CUBIN: cubin_hash}} for commit, cubin_hash in both)
    return write_lines(root / "results" / "gpu" / "cubins.jsonl", *lines)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(launch_facts, "find_code_name", lambda *_: KERNEL)
    return tmp_path


def run(
    *commits: str, throttled: Mapping[str, list[str]] = MappingProxyType({}), name: str = NAME, uuid: str | None = None
) -> dict[str, Any]:
    """Return the record of a run of some commits. `throttled` has the reasons for throttling by commit."""
    entries = [{"commit": commit, "configuration": name, "reasons": reasons} for commit, reasons in throttled.items()]
    return {"commits": commits, "arch": "sm_90", "held_back": entries, "before": {"uuid": uuid}}


def lasting(run: dict[str, Any], started: str, ended: str) -> dict[str, Any]:
    """Return a run that began and ended in the given years. Its driver is called after the year of its start."""
    moments = {"started": f"{started}-01-01T00:00:00+00:00", "ended": f"{ended}-01-01T00:00:00+00:00"}
    return {**run, **moments, "before": {"driver": started, "uuid": None}}


def apart(base: str | None, head: str | None) -> list[dict[str, Any]]:
    """Return a run of base and a run of head, on the given GPUs; None is an unknown GPU."""
    return [run(BASE, uuid=base), run(HEAD, uuid=head)]


POWER, HEAT = ["power"], ["heat"]
TOGETHER = [run(BASE, HEAD)]
HELD_BASE, HELD_HEAD = [run(BASE, throttled={BASE: POWER}), run(HEAD)], [run(BASE), run(HEAD, throttled={HEAD: POWER})]
HELD_BOTH = [run(BASE, HEAD, throttled={BASE: POWER, HEAD: POWER})]
HELD_IN_TURNS = [run(BASE, HEAD, throttled={HEAD: POWER})]
UNCHANGED, SEVERAL = "machine code unchanged", "measured on different GPUs; machine code unchanged"

#: Two runs of both commits on different GPUs, each of one configuration.
FLEET = [{**run(BASE, HEAD, uuid=uuid), "selected": {TIME: [name]}} for uuid, name in (("A", "one"), ("B", "other"))]

#: Time of head over that of base, both times in copies, code hashes, runs, verdict and reason. If the times in copies
#: are equal, a copy became as much slower as the kernel.
CASES: dict[str, tuple[float, tuple[float, float | None] | None, str, list[dict[str, Any]], str, str]] = {
    "nothing known": (1.1, None, "", TOGETHER, SLOW, ""),
    "the copy did not change": (1.1, (1.2, 1.2 * 1.1), "ab", TOGETHER, SLOW, ""),
    "neither copy nor machine code changed": (1.1, (1.2, 1.2 * 1.1), "aa", TOGETHER, SLOW, UNCHANGED),
    "the copy changed": (
        1.1, (1.2, 1.2), "aa", TOGETHER, UNDECIDED,
        "a plain copy, timed beside the kernel, changed as much (kernel / copy: 1.000 times base)",
    ),
    "copy and machine code changed": (1.1, (1.2, 1.2), "ab", TOGETHER, SLOW, ""),
    "the copy changed, unknown machine code": (1.1, (1.2, 1.2), "", TOGETHER, SLOW, ""),
    "no copy in head": (1.1, (1.2, None), "aa", TOGETHER, SLOW, UNCHANGED),
    "the same time": (1.0, (1.2, 1.2), "aa", HELD_HEAD, SAME, ""),
    "faster": (0.9, (1.2, 1.2 * 0.9), "aa", TOGETHER, Verdict.FASTER.value, UNCHANGED),
    "throttled in head": (1.1, None, "ab", HELD_HEAD, UNDECIDED, f"{HELD} head: power"),
    "throttled in base": (1.1, None, "ab", HELD_BASE, UNDECIDED, f"{HELD} base: power"),
    "throttled alike in one run": (1.1, None, "", HELD_BOTH, SLOW, ""),
    "throttled in two runs": (
        1.1, None, "", [HELD_BASE[0], HELD_HEAD[1]], UNDECIDED, f"{HELD} base: power; in head: power",
    ),
    "throttled differently in one run": (
        1.1, None, "", [run(BASE, HEAD, throttled={BASE: POWER, HEAD: HEAT})], UNDECIDED,
        f"{HELD} base: power; in head: heat",
    ),
    "throttled in interleaved runs": (1.1, None, "", HELD_BOTH * 2, UNDECIDED, f"{HELD} base: power; in head: power"),
    "throttled in head of an interleaved run": (1.1, None, "", HELD_IN_TURNS, UNDECIDED, f"{HELD} head: power"),
    "other throttled commit": (1.1, None, "", [run(BASE), run(HEAD, "d" * 40, throttled={"d" * 40: POWER})], SLOW, ""),
    "other throttled configuration": (
        1.1, None, "", [run(BASE), run(HEAD, throttled={HEAD: POWER}, name=f"{TIME}(other)")], SLOW, "",
    ),
    "a later run of something else": (
        1.1, None, "", [lasting(HELD_IN_TURNS[0], "2020", "2098"), lasting(run(HEAD), "2099", "2099")], UNDECIDED,
        f"{HELD} head: power",
    ),
    "two GPUs, 3 %": (1.03, None, "ab", apart("A", "B"), SAME, ""),  # the threshold is 8 %
    "two GPUs, 10 %": (1.1, None, "ab", apart("A", "B"), SLOW, ""),
    "two GPUs, the same machine code": (1.1, None, "aa", apart("A", "B"), UNDECIDED, SEVERAL),
    "one GPU is not known": (1.03, None, "ab", apart("A", None), SAME, ""),
    "a fleet, both commits on one GPU": (1.03, None, "ab", FLEET, SLOW, ""),
    "a fleet, head on another GPU": (1.03, None, "ab", [*FLEET, {**FLEET[0], "before": {"uuid": "C"}}], SAME, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_changes_of_the_machine_are_undecided(name: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A slower time is undecided if the machine may be the cause: an equally slower copy, throttling or another GPU."""
    factor, copies, hashes, runs, verdict, reason = CASES[name]
    _write_records(write(root, _suite(factor, copies)), runs, hashes)
    _, document = review_as_json(root, capsys)
    (row,) = document["rows"]
    assert row["verdict"] == verdict
    assert row["reason"].startswith(reason) if reason else row["reason"] == ""
    assert row["copies"] == (pytest.approx(copies) if copies and copies[1] else None)
    assert document["only_base"] == [], "a copy ratio has no entry of its own"
    uuids = {run["before"]["uuid"] for run in runs if "other" not in run.get("selected", {}).get(TIME, ())}
    measured = "may have measured" if None in uuids else "measured"
    apart_note = f"several GPUs of one model {measured} 1 of 1 timed benchmarks: changes up to 8 % are SAME there; "
    remedy = "for smaller ones, measure both on one GPU: kernelwatch measure bbbbbbbb cccccccc"
    assert document["notes"] == [apart_note + remedy] * (len(uuids) - 1)  # one note for two GPUs


@pytest.mark.parametrize(("reasons", "shown"), [((), HELD), ((Reason(ReasonKind.CHANCE, (0.5, 1)),), "p = 0.5")])
def test_throttling_keeps_the_first_reason(reasons: tuple[Reason, ...], shown: str) -> None:
    """Throttling is the reason only if there is no other. A throttled time has no range."""
    judgement = Judgement(Verdict.UNDECIDED, 1.1, 0.01, reasons=reasons, could_be=(0.9, 1.0))
    point: Any = SimpleNamespace(copies=None)
    doubted = add_doubts(judgement, Pair(TIME, point, point), unchanged=None, throttle_reasons="in head: power")
    assert doubted.reason.startswith(shown)
    assert doubted.could_be is None


@pytest.mark.parametrize(
    ("params", "ran_on", "unchanged"),
    [({"arch": "sm_100"}, "sm_90", False), ({"arch": "sm_90"}, "sm_100", True), ({}, "sm_90", True), ({}, None, True)],
)
def test_code_hash_of_arch_decides(params: dict[str, str], ran_on: str | None, unchanged: bool, root: Path) -> None:
    """The configuration's architecture decides, else the GPU's, else the only one. Only code for sm_100 changed."""
    folder = write(root, _suite(1.1, None)) / "results" / "gpu"
    write_lines(folder / "runs.jsonl", {"commits": [BASE, HEAD], **({"arch": ran_on} if ran_on else {})})
    lines = [
        {"commit": commit, "arch": arch, "cubins": {CUBIN: cubin_hash}}
        for arch, hashes in {"sm_90": "aa", **({"sm_100": "ab"} if ran_on else {})}.items()
        for commit, cubin_hash in zip((BASE, HEAD), hashes, strict=True)
    ]
    write_lines(folder / "cubins.jsonl", *lines)
    base, head = (load_commit(History("gpu", root), commit, "python3.11") for commit in (BASE, HEAD))
    assert is_code_unchanged(base, head, TIME, params, KERNEL) is unchanged


@pytest.mark.parametrize(
    ("counts", "hashes", "files", "notes"),
    [
        ((4.0, 8.0), "aa", [], ["counts changed with equal machine code"]),
        ((4.0, 8.0), "ab", [], []),
        ((4.0, 4.0), "aa", [], []),
        ((4.0, 8.0), "", [], []),
        ((4.0, 4.0), "aa", ["benchmarks/kernels.py"], ["with uncommitted changes in benchmarks/kernels.py"]),
    ],
)  # fmt: skip
def test_notes_on_suite_and_uncommitted_files(
    counts: tuple[float, float], hashes: str, files: list[str], notes: list[str], root: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """If counts changed with equal machine code, the suite changed."""
    write(root, pair(*counts, COUNT))
    runs = [{"commits": [BASE]}, {"commits": [HEAD], "uncommitted": files}]
    _write_records(root, runs, hashes)
    shown = [note for note in review_as_json(root, capsys)[1]["notes"] if "measure" in note]
    assert len(shown) == len(notes)
    assert all(expected in note for expected, note in zip(notes, shown, strict=True))


#: Number of unchanged times, their seconds, their noise in head, code hashes, runs, whether head reused the numbers,
#: and the thresholds of long and short times. A noise of 0.9991 gives 2 * 0.09 %, rounded up to 0.2 %.
PAIRS: dict[str, tuple[int, float, float, str, list[dict[str, Any]], bool, tuple[float, float]]] = {
    "long": (MIN_CHANGES, 30e-6, 0.9991, "aa", apart("A", "A"), False, (0.002, 0.05)),
    "without any noise": (MIN_CHANGES, 30e-6, 1.0, "aa", apart("A", "A"), False, (0.001, 0.05)),
    "short": (MIN_CHANGES, 3e-6, 0.9991, "aa", apart("A", "A"), False, (0.01, 0.002)),
    "too few": (MIN_CHANGES - 1, 30e-6, 0.9991, "aa", apart("A", "A"), False, (0.01, 0.05)),
    "other machine code": (MIN_CHANGES, 30e-6, 0.9991, "ab", apart("A", "A"), False, (0.01, 0.05)),
    "unknown machine code": (MIN_CHANGES, 30e-6, 0.9991, "", apart("A", "A"), False, (0.01, 0.05)),
    "another GPU": (MIN_CHANGES, 30e-6, 0.9991, "aa", apart("A", "B"), False, (0.01, 0.05)),
    "in turns": (MIN_CHANGES, 30e-6, 0.9991, "aa", [run(BASE, HEAD, uuid="A")], False, (0.01, 0.05)),
    "no GPU is known": (MIN_CHANGES, 30e-6, 0.9991, "aa", apart(None, None), False, (0.01, 0.05)),
    "one measurement": (MIN_CHANGES, 30e-6, 0.9991, "aa", apart("A", "A"), True, (0.01, 0.05)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_thresholds_come_from_noise(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At least MIN_CHANGES times of equal code, by one GPU in two runs, narrow them. `other` is 0.7 % slower."""
    count, seconds, noisy, hashes, runs, taken_over, expected = PAIRS[name]
    codes = {"other": KERNEL.replace("float32", "float64")}
    monkeypatch.setattr(launch_facts, "find_code_name", lambda _, params: codes.get(params["case"], KERNEL))
    names = [f"case{number}" for number in range(count)]
    times: Suite = {
        commit: {TIME: {**dict.fromkeys(names, samples(seconds * change)), "other": samples(seconds * much)}}
        for commit, change, much in ((BASE, 1.0, 1.0), (HEAD, noisy, 1.007))
    }
    folder = _write_records(write(tmp_path, times), runs, hashes)
    if taken_over:
        reused = {TIME.rpartition(".")[0]: {BASE: names}}
        write_lines(folder / "fingerprints.jsonl", {**RUN, "commit": HEAD, "fingerprints": {}, "reused": reused})
    history = History("gpu", tmp_path)
    assert tuple(load_thresholds(history, HEAD, tmp_path).by_duration.values()) == pytest.approx(expected)
    assert tuple(ShownMachine(history, {}, tmp_path).noise.values()) == pytest.approx(expected)
    _, document = review_as_json(tmp_path, capsys)
    (row,) = (candidate for candidate in document["rows"] if candidate["configuration"] == f"{TIME}(other)")
    is_narrowed = min(expected) <= 0.002  # below the 0.7 % of `other`; not narrowed, thresholds are 1 % and 5 %
    assert row["verdict"] == ("SLOWER" if is_narrowed else "SAME")
