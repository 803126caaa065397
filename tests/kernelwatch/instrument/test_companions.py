"""Jobs of several commits, measured in turns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelwatch.instrument import exchange
from kernelwatch.instrument.companions import Companions
from kernelwatch.instrument.job import Job, Outcome, Ready
from kernelwatch.instrument.references import Fetch
from tests.served import LENGTH, REFERENCE, Session, job, served


def _same(sent: Job, _: Ready) -> Job:
    return sent


def test_in_turns(tmp_path: Path) -> None:
    """A job takes turns with the other commit's, whose outcomes are kept, round by round, and verified when asked for.

    A third commit's has no companion.
    """
    ours, theirs, other = (
        job(package_digest="ours"),
        job(package_digest="theirs"),
        job(package_digest="ours", name="another"),
    )
    (tmp_path / "0.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, (ours, other))))
    (tmp_path / "1.jsonl").write_bytes(msgspec.json.encode(theirs))
    done: list[str] = []

    class InTurns(Session):
        def measure(self, jobs: Sequence[Job], fetch: Fetch) -> list[Outcome]:
            done.append(" and ".join(f"{each.package_digest}'s {each.name}" for each in jobs))
            fetch(LENGTH)
            turn = len(done) - 1 - done.count("theirs's verified")
            return [Outcome(samples=(10.0 * place + turn,), copies=(2.0,)) for place in range(len(jobs))]

        def verify(self, job: Job, fetch: Fetch) -> None:
            done.append(f"{job.package_digest}'s verified")
            fetch(LENGTH)

    with served(InTurns(), tmp_path, companions=tmp_path) as address:
        asked = (other, ours, ours, theirs, theirs, ours)
        found = [exchange.ask(address, partial(_same, one), REFERENCE) for one in asked]
    assert done == [
        "ours's another",
        *["ours's no kernel and theirs's no kernel"] * 2,
        *["theirs's verified"] * 2,
        "ours's no kernel and theirs's no kernel",
    ]
    assert [each.samples for each in found] == [(0.0,), (1.0,), (2.0,), (11.0,), (12.0,), (3.0,)]


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        ({"cubin": b"other code"}, True),
        ({"reference": "other"}, True),
        ({"name": "another"}, False),
        ({"isolated": True}, False),
        ({"useful_bytes": 1}, False),
        ({"samples": 3}, False),
    ],
)
def test_companions(changes: dict[str, Any], known: bool, tmp_path: Path) -> None:
    """The same launch of another commit, if it can share buffers and instrument; for commits that are known alone."""
    ours, theirs = job(package_digest="ours"), job(**{"package_digest": "theirs", **changes})
    for place, each in enumerate((ours, theirs)):
        (tmp_path / f"{place}.jsonl").write_bytes(msgspec.json.encode(each) + b"\n")
    companions = Companions(tmp_path)
    assert companions.of(ours) == ([theirs] if known else [])
    assert companions.of(job(package_digest="a third")) == []
    assert companions.commits(ours) == {"ours", "theirs"}
    assert companions.commits(job(package_digest="a third")) == {"a third"}
    assert Companions(None).of(ours) == []
