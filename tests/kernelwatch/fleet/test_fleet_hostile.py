"""What a fleet's workers can do to the driver: they send what they like, and nothing of it runs."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.fleet import live
from kernelwatch.fleet.shards import Outcome
from kernelwatch.store.accept.refusal import RefusedError

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("default")]  # other people's, of Dask


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a fleet of this host, with two workers."""
    from kernelwatch.fleet import cluster

    with cluster.embedded(tmp_path_factory.mktemp("work"), 2) as client:
        yield client


OUTCOME = Outcome("GPU-1", {"machine.json": b"{}"}, {f"ab/{'ab' * 32}.json": b"{}"}, 1.5)


@pytest.mark.parametrize(
    "changes",
    [
        {"device": 5},
        {"files": {"name": "text"}},
        {"files": [b"5"]},
        {"compiled": {f"../{'ab' * 32}.json": b""}},
        {"compiled": {f"ab/{'ab' * 32}.json\n": b""}},
        {"compiled": {"ab/../../ab.json": b""}},
        {"seconds": -1.0},
        {"seconds": "1.5"},
    ],
)
def test_an_outcome_out_of_bounds(changes: dict[str, Any]) -> None:
    """It is refused; what is in bounds is read as it was."""
    assert Outcome.read(OUTCOME.packed()) == OUTCOME
    with pytest.raises(RefusedError, match=r"^what came back is no outcome: "):
        Outcome.read(replace(OUTCOME, **changes).packed())


@pytest.mark.parametrize("packed", [OUTCOME, None, "text", b"", b"\x80", b"5", OUTCOME.packed()[:-1]])
def test_no_outcome(packed: object) -> None:
    """It is refused."""
    with pytest.raises(RefusedError, match=r"^what came back is no outcome: "):
        Outcome.read(packed)


def test_what_commands_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """It is not printed."""
    lines = live.Lines()
    lines.say("one\x1b[2J\ntwo\x07")
    assert capsys.readouterr().out == "one[2J\ntwo\n"
    lines.hear((0, {"worker": "GPU-1\x1b", "said": "hel\rlo"}))
    assert lines._said == {"GPU-1": "hello"}


class Evil:
    """Whoever unpickles it writes down its process."""

    def __init__(self, note: Path) -> None:
        self.note = note

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Path]]:
        return _note, (self.note,)


class EvilError(Exception):
    """Whoever unpickles it writes down its process."""

    def __init__(self, note: Path) -> None:
        super().__init__("evil")
        self.note = note

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Path]]:
        return _note, (self.note,)


def _note(note: Path) -> Exception:
    with note.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return Exception("noted")


def _returns(note: Path) -> Any:
    return Evil(note)


def _hides(note: Path) -> Any:
    return {"bytes": [Evil(note)]}


def _raises(note: Path) -> None:
    raise EvilError(note)


def _warns(note: Path) -> bytes:
    from distributed import get_worker

    get_worker().log_event("warn", {"message": pickle.dumps(Evil(note)), "category": pickle.dumps(Evil(note))})
    return b"5"


def _lies(note: Path) -> Any:
    from distributed.protocol.serialize import Serialized

    return Serialized({"serializer": "dask", "type-serialized": pickle.dumps(Evil(note)), "sub-header": {}}, [b"5"])


class _Type(type):
    note: Path


def _is_of_a_type(note: Path) -> Any:
    import copyreg

    copyreg.pickle(_Type, lambda each: (_note, (each.note,)))  # type: ignore[arg-type, return-value]
    return _Type("Evil", (), {"note": note})()


@pytest.mark.parametrize("does", [_returns, _hides, _raises, _warns, _lies, _is_of_a_type])
def test_hostile_worker(does: Callable[[Path], Any], embedded: Any, tmp_path: Path) -> None:
    """Whatever it sends, nothing of it runs in the driver, and the driver goes on."""
    note = tmp_path / "note"
    note.write_text("")
    try:
        found = embedded.submit(does, note).result(30)
    except Exception:  # noqa: BLE001 -- whichever: it is no result
        found = b"5"
    assert found == b"5"
    assert embedded.submit(bytes, b"6", pure=False).result(30) == b"6", "it goes on"
    assert str(os.getpid()) not in note.read_text().split()


@pytest.mark.parametrize("what", [Evil, EvilError])
def test_hostile_pickle(what: Callable[[Path], Any], tmp_path: Path) -> None:
    """The test is one: what is not confined runs."""
    pickle._loads(pickle.dumps(what(tmp_path / "note")))  # type: ignore[attr-defined]
    assert (tmp_path / "note").read_text() == f"{os.getpid()}\n"
