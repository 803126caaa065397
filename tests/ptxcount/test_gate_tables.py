"""Odd values in every table that the gate reads: errors, never a traceback."""

import os
import random

import numpy as np
import pytest

from ptxcount.gate.pins import iter_changes
from tests.ptxcount.gate_repository import LAUNCH, Repository

KEYS = (
    "file", "name", "kernel", "grid", "block", "arguments", "variables", "flags", "arch", "dynamic_shared", "cluster",
    "limits", "odd",
)  # fmt: skip
VALUES = (
    "0", "-1", "1", "true", "1.5", "nan", "inf", "99999999999999999999", '""', '"\\u0000"', '"x"', '"\'"', "[]", "[1]",
    "[0]", "[true]", "[[1]]", '["x"]', '["x=@scale.cu"]', '["x={"]', "[1, 1, 1, 1]", "{}", "{ a = 1 }",
    '{ load_sectors = "x" }', "{ load_sectors = [1] }", "1979-05-27", "[1979-05-27]", "07:32:00", "[{}]",
    f"{'[' * 3000}{']' * 3000}",
)  # fmt: skip
NESTED = "[" * 100_000


def _replace_key(key: str, value: str) -> str:
    lines = [line for line in LAUNCH.splitlines() if not line.startswith(f"{key} =")]
    return "\n".join([*lines, f"{key} = {value}", ""])


def test_odd_values_have_no_traceback(repository: Repository) -> None:
    seeded = random.Random(55)
    for key in KEYS:
        for value in seeded.sample(VALUES, 10):
            repository.write_launches(_replace_key(key, value))
            code, lines = repository.run("check")
            assert code in (0, 1, 2), (key, value)
            if code:
                assert any(" PC0" in line for line in lines), (key, value)
            if code == 1:  # errors have the exit code 2
                assert not any("Error" in line for line in lines), (key, value, lines)


@pytest.mark.parametrize(("file", "content", "message"), [
    *(("ptxcount.lock", content, "ptxcount.lock:1: error: PC009 LockError: ") for content in (
        NESTED, "[]", '{"nvcc": 1, "launches": {}}', '{"nvcc": "", "launches": {"a": {"b": {"c": 1.5}}}}')),
    *(("in.npy", content, "ptxcount.toml:1: error: PC009 LaunchError: {folder}/in.npy: it has no")
      for content in ("", "\x93NUMPY\x01\x00")),
    *((file, "FIFO", "ptxcount.toml:1: error: PC009 LaunchError: ")
      for file in ("ptxcount.toml", "ptxcount.lock", "in.npy", "scale.cu")),
])  # fmt: skip
def test_odd_file_is_an_error(file: str, content: str, message: str, repository: Repository) -> None:
    np.save(repository.folder / "in.npy", np.zeros(8192, np.float32))
    repository.write_launches(LAUNCH.replace("in=float32[8192]=random(1)", "in=@in.npy"))
    path = repository.folder / file
    path.unlink(missing_ok=True)
    if content == "FIFO":
        os.mkfifo(path)
    else:
        path.write_text(content, encoding="latin-1")
    code, lines = repository.run("check")
    assert code == 2
    assert lines[0].startswith(message.format(folder=repository.folder))
    assert content != "FIFO" or "named pipe" in lines[0]


@pytest.mark.parametrize("argument", ['"n={' + "[" * 5000 + '"', '"n=[1]"', '"in=@/dev/zero"', "'n={\"a\": null}'"])
def test_odd_argument_is_an_error(argument: str, repository: Repository) -> None:
    repository.write_launches(LAUNCH.replace('"n=int32:1024"', argument))
    code, lines = repository.run("check")
    assert code == 2
    assert lines[0].startswith("ptxcount.toml:1: error: PC009 LaunchError: ")


def test_change_names_a_removed_header() -> None:
    access = {"space": "global", "kind": "load", "requests": 1, "sectors": 4}
    row = {"file": "scale.cu", "line": 7, "text": "x = in[i];", "accesses": [access]}
    load = {"global load requests": 1, "global load sectors": 4}
    pinned = {"scale.cu: x = in[i];": load, "more.h: return in[i];": load}
    # a pin has no line, so the change is at the first
    assert {(change.file, change.line) for change in iter_changes([row], pinned)} == {("more.h", 1)}
