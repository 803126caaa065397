"""Files that are torn already: each is kept under another name, one line names it, and the run goes on.

Of lines, what is read is what was written, and nothing stored is lost by what fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asv.machine import Machine

from kernelwatch.asv import plugin as asv_plugin
from kernelwatch.store import jsonl, storing
from tests.faults import writer

TORN = [
    (b"", "is empty"),
    (b'{"results": {"time_x": [1.', "is not JSON"),
    (b"\xff\xfe{}", "is not JSON"),
    (b"\0" * 512, "is not JSON"),
    (b"[]", "holds no JSON object"),
    (b"[" * 100_000, "is not JSON"),
]


NAMES = ["benchmarks.json", "m/machine.json", "m/c0ffeec0-virtualenv-py3.json"]


@pytest.mark.parametrize(("name", "content", "why"), [(NAMES[n % 3], *torn) for n, torn in enumerate(TORN)])
def test_an_unreadable_file_is_kept_aside(
    name: str, content: bytes, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its bytes are kept, also those of one more, once a run has the folder; the other files stay as they are."""
    writer.store(tmp_path, 1)
    others = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path != tmp_path / name}
    for suffix in ("", "1"):
        (tmp_path / name).write_bytes(content)
        with storing.alone(tmp_path):
            assert not (tmp_path / name).exists()
        assert (tmp_path / f"{name}.unreadable{suffix}").read_bytes() == content
    assert {path: path.read_bytes() for path in others} == others
    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith(f"{tmp_path / name} {why}")
    assert f"it is kept as {Path(name).name}.unreadable," in caplog.messages[0]
    writer.store(tmp_path, 2)


def test_what_asv_reads_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Files that load, and those that are none of asv's."""
    writer.store(tmp_path, 1)
    (tmp_path / "m" / "noise.unfinished").write_text("kept by kernelwatch.review.selftest")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    storing.mend(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
    assert not caplog.messages


ENTRIES: list[dict[str, Any]] = [{"name": "one", "samples": [1.0, 2.5]}, {"name": "µs\n", "samples": []}, {}]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Appended one by one or written anew; one line each; no other file is left."""
    path = tmp_path / "kept.jsonl"
    assert jsonl.read(path) == []
    for entry in ENTRIES:
        jsonl.append(path, entry)
    assert jsonl.read(path) == ENTRIES
    assert len(path.read_text().splitlines()) == len(ENTRIES)
    jsonl.replace(path, ENTRIES[1:])
    assert jsonl.read(path) == ENTRIES[1:]
    assert list(tmp_path.iterdir()) == [path]


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    """By file and number; blank lines count, and are no entries. One without an end stays a line of its own."""
    path = tmp_path / "kept.jsonl"
    path.write_text('{"name": "one"}\n\nnan,')
    jsonl.append(path, {"name": "two"})
    assert path.read_text().endswith('\nnan,\n{"name": "two"}\n')
    with pytest.raises(ValueError, match=r"kept\.jsonl, line 3: is not JSON"):
        jsonl.read(path)


@pytest.mark.parametrize("entries", [[{"n": 1}, {"n": {2}}], [{"n": {1}}]], ids=["the second", "the first"])
def test_what_cannot_be_written_is_written_in_no_part(entries: list[dict[str, object]], tmp_path: Path) -> None:
    """All entries or none, and no other file is left."""
    path = tmp_path / "runs.jsonl"
    jsonl.append(path, {"n": 0})
    with pytest.raises(TypeError):
        jsonl.append(path, *entries)
    with pytest.raises(TypeError):
        jsonl.replace(path, entries)
    with pytest.raises(TypeError):
        storing.write_json(str(path), {"n": {1}})
    assert jsonl.read(path) == [{"n": 0}]
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """What it names is written: ~/.asv-machine.json may be one."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "elsewhere" / "file.json")
    storing.write_json(str(link), {"b": 1, "a": 2}, 3)
    assert link.is_symlink()
    assert link.read_text() == '{\n    "a": 2,\n    "b": 1,\n    "version": 3\n}'
    assert list((tmp_path / "elsewhere").iterdir()) == [tmp_path / "elsewhere" / "file.json"]


def test_the_machines_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """~/.asv-machine.json, torn, is written anew."""
    monkeypatch.setattr(Machine, "get_defaults", None)  # which loading replaces
    path = tmp_path / "machines.json"
    path.write_bytes(b"")
    load = asv_plugin._load_machine(lambda cls, **kwargs: kwargs["machine_name"])
    assert load(Machine, machine_name="m", _path=str(path)) == "m"
    assert storing.problem(path) is None
    assert (tmp_path / "machines.json.unreadable").read_bytes() == b""
