"""`check` names the inputs that changed since `pin`: headers, source, compiler, settings."""

import json

import pytest

from ptxcount.gate import count_cache
from tests.ptxcount.gate_repository import LAUNCH, Change, Repository, launch, lock, pin

#: Headers; the kernel reads all but the last.
HEADERS = ("include/tile.cuh", "include/more.cuh", "include/most.cuh", "include/unused.cuh")
FLAGS = 'flags = "-I include"\n'
NAMED = f'{LAUNCH}{FLAGS}name = "one"\n'
NONE = "no file of the project changed, only the count"


@pytest.fixture
def headers(repository: Repository) -> Repository:
    """Return a pinned repository whose kernel reads three headers."""
    (repository.folder / "include").mkdir()
    for header in HEADERS:
        (repository.folder / header).write_text(f"#pragma once  // {header}\n")
    (repository.folder / HEADERS[0]).write_text("#define TILE 2\n")
    lines = "".join(f"#include <{header.partition('/')[2]}>\n" for header in HEADERS[:3])
    repository.write_kernel(2, ("namespace phys", f"{lines}namespace phys"), ("* STRIDE]", "* TILE]"))
    repository.write_launches(LAUNCH + FLAGS)
    assert repository.run("pin")[0] == 0
    return repository


def _header(number: int, text: str) -> Change:
    return lambda repository: (repository.folder / HEADERS[number]).write_text(text)


def _source(text: str) -> Change:
    def prepend(repository: Repository) -> None:
        source = repository.folder / "scale.cu"
        source.write_text(text + source.read_text())

    return prepend


def _drop_files(repository: Repository) -> None:
    """Remove the hashes of files from the lock file, as in one of an older release."""
    lock = repository.folder / "ptxcount.lock"
    document = json.loads(lock.read_text())
    del document["files"]
    lock.write_text(json.dumps(document))


#: Changes, code of a finding (PC003: a count rose, PC004: one fell, PC006: wrong kernel), and the end of its text.
CAUSES: list[tuple[list[Change], str, str]] = [
    ([_header(0, "#define TILE 8\n")], "PC003", "to 1024 (8 to 32 per request, ideal 4); include/tile.cuh changed"),
    ([_header(0, "#define TILE 1\n")], "PC004", "run ptxcount pin to keep the lower count; include/tile.cuh changed"),
    ([_header(0, "#define TILE 99\n")], "PC006", "of 32768 bytes; include/tile.cuh changed"),
    ([_header(0, "#define TILE 8\n"), _header(3, "#define UNUSED\n")], "PC003", "ideal 4); include/tile.cuh changed"),
    ([_header(n, f"#define TILE 8{' ' * n}\n") for n in range(2)], "PC003",
     "ideal 4); include/tile.cuh, include/more.cuh changed"),
    ([*(_header(n, f"#define TILE 8{' ' * n}\n") for n in range(3)), _source("// changed\n")], "PC003",
     "ideal 4); scale.cu, include/tile.cuh, 2 more files changed"),
    ([_header(1, f"#pragma once  // {HEADERS[1]}\r\n"), _header(0, "#define TILE 8\r\n")], "PC003",
     "ideal 4); include/tile.cuh changed"),  # not more.cuh: ends of lines do not count
    ([lock("load sectors\": 256", "load sectors\": 128")], "PC003",
     f"from 128 to 256 (4 to 8 per request, ideal 4); {NONE}"),
    ([lock("13.0.88", "12.4.99"), lock("load sectors\": 256", "load sectors\": 128")],
     "PC003", "from 128 to 256 (4 to 8 per request, ideal 4); nvcc changed"),
    ([launch(NAMED), pin(), launch(NAMED.replace("int32:1024", "int32:512"))],
     "PC004", "count; the settings of the launch changed"),
    ([launch(NAMED), pin(), launch(f'{NAMED}arch = "sm_80"\n'), _header(0, "#define TILE 4\n")],
     "PC003", "; include/tile.cuh, the settings of the launch changed"),
    ([launch(NAMED), _header(0, "#define TILE 8\n")], "PC003",
     "ideal 4); include/tile.cuh changed"),  # a new name: its earlier settings are unknown
    ([_drop_files, _header(0, "#define TILE 8\n")], "PC003",
     "sectors rose from 256 to 1024 (8 to 32 per request, ideal 4)"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "code", "end"), CAUSES)
def test_finding_ends_with_its_causes(changes: list[Change], code: str, end: str, headers: Repository) -> None:
    for change in changes:
        change(headers)
    line = next(line for line in headers.run("check")[1] if f" {code} " in line)
    assert line.rpartition(" [launch ")[0].partition(". Why: ")[0].endswith(end), line


def test_pin_names_causes(headers: Repository) -> None:
    _header(0, "#define TILE 1\n")(headers)
    assert "; include/tile.cuh changed [" in headers.run("pin")[1][0]
    assert headers.run("check") == (0, [])


def test_lock_has_hashes_of_compiled_files(headers: Repository) -> None:
    document = json.loads((headers.folder / "ptxcount.lock").read_text())
    assert [*document["files"]] == sorted([*HEADERS[:3], "scale.cu"])
    assert document["files"] == count_cache.hash_files(headers.folder, [*HEADERS[:3], "scale.cu"])
    assert "settings" not in document  # the key of a launch without a name has them
