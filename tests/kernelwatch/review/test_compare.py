"""Verdicts on configurations, and exit codes, for made-up results."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch.review import time_verdicts
from kernelwatch.review.significance import compute_p_value
from kernelwatch.review.verdict import Verdict
from kernelwatch.store.points import Point
from tests.stored import BASE, COUNT, HEAD, TIME, Outcome, pair, review_as_json, samples, write

SLOW, FAST, SAME, UNDECIDED = Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNDECIDED

NAN = math.nan


def two_rounds(first: float, second: float) -> list[float]:
    return samples(first, 10, seed=1) + samples(second, 10, seed=2)


MIRRORED = {SLOW: FAST, FAST: SLOW}

#: Samples of base and of head, the verdict, and a part of the reason. The thresholds are 1 % from 20 µs on (long) and
#: 5 % below (short).
TIMES: dict[str, tuple[Outcome, Outcome, Verdict, str]] = {
    "equal": (samples(30e-6), samples(30e-6), SAME, ""),
    "noise alone": (samples(30e-6), samples(30.1e-6, seed=9), SAME, ""),
    "2 % slower, long": (samples(30e-6), samples(30.6e-6, seed=9), SLOW, ""),
    "2 % faster, long": (samples(30e-6), samples(29.4e-6, seed=9), FAST, ""),
    "2 % slower, above 20 µs": (samples(20.001e-6), samples(20.402e-6, seed=9), SLOW, ""),
    "2 % slower, short": (samples(5e-6), samples(5.1e-6, seed=9), SAME, ""),
    "8 % slower, short": (samples(5e-6), samples(5.4e-6, seed=9), SLOW, ""),
    "8 % faster, short": (samples(5e-6), samples(4.6e-6, seed=9), FAST, ""),
    "samples missing on both": (30e-6, 33e-6, UNDECIDED, "0 + 0 samples, but at least 7 per commit"),
    "samples missing on one": (samples(30e-6), 33e-6, UNDECIDED, "40 + 0 samples, but at least 7 per commit"),
    "samples missing, no change": (30e-6, 30e-6, SAME, ""),
    "6 + 6": (samples(30e-6, 6), samples(33e-6, 6), UNDECIDED, "6 + 6 samples, but at least 7 per commit"),
    "7 + 7": (samples(30e-6, 7), samples(33e-6, 7), SLOW, ""),
    "noise of 20 %": (samples(30e-6, noise=0.2), samples(31e-6, noise=0.2, seed=9), UNDECIDED, ""),
    # The commits differ by 5 %, less than the rounds of one of them.
    "base's rounds": (two_rounds(30e-6, 32.4e-6), samples(32.8e-6), UNDECIDED, "differ by 8.0% in base and 0."),
    "head's rounds": (samples(30e-6), two_rounds(30e-6, 33e-6), UNDECIDED, "in base and 10.0% in head; the sum"),
    "rounds of both": (two_rounds(30e-6, 30.9e-6), two_rounds(31.5e-6, 32.4e-6), UNDECIDED, "3.0% in base and 2.9% in"),
    # Without recorded rounds, the halves of the samples are rounds.
    "halves of 18 samples": (samples(30e-6), samples(30e-6, 9) + samples(33e-6, 9), UNDECIDED, "10.0% in head"),
    "rounds differ by less": (two_rounds(30e-6, 30.3e-6), samples(33e-6), SLOW, ""),
    # The rounds of head differ by 22 %. Base takes 25 % longer than head.
    "rounds differ by less, and it is faster": (samples(27.75e-6), two_rounds(20e-6, 24.4e-6), FAST, ""),
    "zero": (0.0, 33e-6, UNDECIDED, "zero or negative"),
    "negative": (samples(-30e-6), samples(-33e-6), UNDECIDED, "zero or negative"),
    "no scatter at all": ([1e-3] * 40, [1.1e-3] * 40, SLOW, ""),
    "a jumping median": (([30e-6] * 6 + [29e-6] * 4) * 2, ([31e-6] * 6 + [30e-6] * 4) * 2, UNDECIDED, "not exclude 1"),
}


@pytest.mark.parametrize("name", TIMES)
def test_verdicts_on_times(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A time changed if the change is significant, and exceeds the threshold and the spread of rounds.

    Exchanged commits have the opposite verdict.
    """
    base, head, verdict, reason = TIMES[name]
    code, document = review_as_json(write(tmp_path, pair(base, head)), capsys)
    (row,) = document["rows"]
    assert (row["verdict"], code) == (verdict.value, {SLOW: 1, UNDECIDED: 2}.get(verdict, 0))
    assert reason in row["reason"]
    assert bool(row["reason"]) == (verdict is UNDECIDED)
    _, mirrored = review_as_json(write(tmp_path, pair(head, base)), capsys)
    assert mirrored["rows"][0]["verdict"] == MIRRORED.get(verdict, verdict).value


def test_spread_covers_all_rounds() -> None:
    """Head has four rounds of ten samples, around 30, 31.5, 30 and 31.5 µs; the halves of its samples are equal."""
    base_samples, head_samples = samples(30e-6), two_rounds(30e-6, 31.5e-6) * 2
    base = Point({}, 30e-6, tuple(base_samples), counts=(20, 20))
    head = Point({}, float(np.median(head_samples)), tuple(head_samples), counts=(10,) * 4)
    (judged,) = time_verdicts.judge_times([(base, head)], [0.01])
    assert judged.verdict is UNDECIDED
    assert "in base and 5.0% in head; the sum" in judged.reason


def test_range_of_a_ratio_covers_all_processes() -> None:
    """Head's processes take 33 and 36, base's 30 and 32."""
    base, head = (  # the confidence interval is 33 / 30 alone
        Point({}, median, (median,) * 40 + (second_median,) * 5, counts=(40, 5))
        for median, second_median in ((30.0, 32.0), (33.0, 36.0))
    )
    (judged,) = time_verdicts.judge_times([(base, head)], [0.01])
    assert judged.could_be == pytest.approx((33 / 32, 36 / 30))


#: Counts of base and head, verdict, and ratio (None if infinite).
NUMBERS: dict[str, tuple[float, float, Verdict, float | None]] = {
    "from a little to much": (1e-300, 1e300, SLOW, None),
    "from nothing": (0.0, 1.0, SLOW, None),
    "a little more": (4.0, 4.0000001, SLOW, 4.0000001 / 4),
    "to nothing": (1.0, 0.0, FAST, 0.0),
    "a little less": (4.0, 3.9999999, FAST, 3.9999999 / 4),
    "as many": (1.0, 1.0, SAME, 1.0),
    "nothing": (0.0, 0.0, SAME, 1.0),
    "\ud800": (1.0, 1.0, SAME, 1.0),  # a name that UTF-8 cannot encode
}


@pytest.mark.parametrize("benchmark", [COUNT, "track_compiled.Compiled.track_registers"])
def test_any_change_of_exact_numbers_counts(benchmark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any rise is worse, any fall better. The worst come first."""
    base: dict[str, Outcome] = {name: row[0] for name, row in NUMBERS.items()}
    head: dict[str, Outcome] = {name: row[1] for name, row in NUMBERS.items()}
    suite = {BASE: {benchmark: base}, HEAD: {benchmark: head}}
    code, document = review_as_json(write(tmp_path, suite), capsys)
    rows = [(row["configuration"], row["verdict"], row["ratio"]) for row in document["rows"]]
    assert rows == [(f"{benchmark}({name})", verdict.value, ratio) for name, (*_, verdict, ratio) in NUMBERS.items()]
    assert code == 1


#: Outcomes at base and head (None: failed, NaN: skipped), the JSON key with the configuration, reason and exit code.
ABSENT: list[tuple[dict[str, Any], dict[str, Any], str, str, int]] = [
    *(
        ({COUNT: {"one": base}}, {COUNT: {"one": head}}, place, reason, code)
        for base, head, place, reason, code in (
            (1.0, None, "broken", "no reason was recorded; ", 1),
            (NAN, None, "broken", "no reason was recorded; ", 1),
            (1.0, NAN, "only_base", "without a value in head", 2),
            (None, 1.0, "repaired", "no reason was recorded; ", 0),
            (NAN, 1.0, "only_head", "without a value in base", 2),
            (math.inf, 1.0, "only_head", "without a value in base", 2),
            (None, None, "failed", "no reason was recorded; ", 2),
            (NAN, NAN, "", "", 2),
            (None, NAN, "", "", 2),
        )
    ),
    ({COUNT: {"one": 1.0}}, {TIME: {"one": NAN}}, "only_base", "not run in head", 2),
    ({COUNT: {"one": NAN}}, {COUNT + "@2": {"one": 1.0}}, "only_head", "by another version of the benchmark", 2),
    ({COUNT: {"one": NAN}}, {COUNT: {"one": NAN, "two": 1.0}}, "only_head", "no configuration in base", 2),
]


@pytest.mark.parametrize(("base", "head", "place", "reason", "exit_code"), ABSENT)
def test_missing_values_are_listed(
    base: Any, head: Any, place: str, reason: str, exit_code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure in head alone gives exit code 1, one in base alone 0. Other missing values give 2."""
    code, document = review_as_json(write(tmp_path, {BASE: base, HEAD: head}), capsys)
    lists = {key: document[key] for key in ("broken", "failed", "repaired", "only_base", "only_head") if document[key]}
    assert lists.keys() == {place} - {""}
    assert all(reason in failure["reason"] for (failure,) in lists.values())
    assert (document["rows"], code) == ([], exit_code)


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [([], []), ([0.04], [0.04]), ([0.01, 0.04, 0.03], [3 * 0.01, 2 * 0.03, 2 * 0.03]), ([0.5, 0.9], [1.0, 1.0])],
)
def test_holm_correction(p_values: list[float], corrected: list[float]) -> None:
    """Holm multiplies p by the number of remaining hypotheses. Results rise with p, and are at most 1."""
    assert time_verdicts.apply_holm_correction(p_values) == pytest.approx(corrected)


def points(seed: int, count: int = 1000, process: float = 0.0) -> list[Point]:
    """Return times of 30 µs with 0.3 % noise: two processes of 20 samples, with the relative noise `process`."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 0.003, (count, 40)) + np.repeat(rng.normal(0, process, (count, 2)), 20, axis=1)
    return [Point({"case": str(i)}, float(np.median(row)), tuple(row)) for i, row in enumerate(30e-6 * (1 + noise))]


def verdicts(base: list[Point], head: list[Point], threshold: float) -> set[Verdict]:
    pairs = list(zip(base, head, strict=True))
    return {judged.verdict for judged in time_verdicts.judge_times(pairs, [threshold] * len(pairs))}


def test_noise_is_no_change() -> None:
    """Uncorrected tests would call some noise a change: p < 0.05 is expected in 50 of 1000 pairs.

    In the last pair, processes differ by 0.2 %, ten times the spread of an H200 from 20 µs on.
    """
    base, head = points(1), points(2)
    raw = [compute_p_value(old.samples, new.samples) for old, new in zip(base, head, strict=True)]
    assert sum(p < 0.05 for p in raw) > 25
    assert verdicts(base, head, threshold=0.01) == {SAME}
    assert verdicts(base[:300], head[:300], threshold=0.0) <= {SAME, UNDECIDED}
    assert verdicts(points(3, process=0.002), points(4, process=0.002), threshold=0.01) <= {SAME, UNDECIDED}


def test_one_slowdown_among_a_thousand_is_found() -> None:
    base, head = points(5), points(6)
    slow = tuple(1.02 * sample for sample in head[500].samples)
    head[500] = Point(head[500].params, float(np.median(slow)), slow)
    judged = time_verdicts.judge_times(list(zip(base, head, strict=True)), [0.01] * 1000)
    assert [index for index, judgement in enumerate(judged) if judgement.verdict is not SAME] == [500]
    assert judged[500].verdict is SLOW
