"""Messages of `kernelwatch regressions` about commits that a repository lacks, and the commands that it advises."""

import subprocess
from pathlib import Path

import pytest

from kernelwatch.cli.regressions import main
from kernelwatch.store import git
from tests.commits import begin, commit, set_identity
from tests.stored import COUNT, write


def test_advice_completes_a_shallow_clone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Git ignores --unshallow with --all if the clone has two remotes, and one of them has further commits."""
    upstream, fork, clone = (tmp_path / name for name in ("upstream", "fork", "clone"))
    old, head = commit(begin(upstream)), commit(upstream)
    git.text(tmp_path, "clone", "--quiet", str(upstream), str(fork))
    side = commit(set_identity(fork))
    git.text(tmp_path, "clone", "--quiet", "--depth=1", upstream.as_uri(), str(clone))
    git.text(clone, "remote", "add", "fork", str(fork))
    write(clone, {measured: {COUNT: {"one": 10}} for measured in (old, head, side)})
    main([], clone)
    message = capsys.readouterr().err
    assert all(missing[:8] in message for missing in (old, side))
    subprocess.run(message.rpartition("run: ")[2], shell=True, cwd=clone, check=True, capture_output=True)
    main([], clone)
    assert capsys.readouterr().err == ""


def test_shallow_clone_without_measured_commits_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, clone = begin(tmp_path / "whole"), tmp_path / "clone"
    measured = commit(root)
    commit(root)
    git.text(tmp_path, "clone", "--quiet", "--depth=1", root.as_uri(), str(clone))
    outputs = []
    for folder in (root, clone):
        write(folder, {measured: {COUNT: {"one": 1.0}}})
        assert main([], folder) == 0
        outputs.append(capsys.readouterr().err)
    message = "this clone is shallow and lacks the measured commits, so they are ordered by date"
    assert outputs == ["", f"{message}; run: git fetch --unshallow\n"]


def test_unknown_commits_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = commit(begin(tmp_path))
    write(tmp_path, {"e" * 40: {COUNT: {"one": 1.0}}, known: {COUNT: {"one": 8.0}}})
    assert main([], tmp_path) == 0
    message = "left out: results of eeeeeeee, which this repository does not have; run: git fetch --all\n"
    assert message in capsys.readouterr().err, "--unshallow is for shallow clones"
