"""Committing results to their branch: once there is something new, and nothing else of the checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "kernelwatch/src/kernelwatch/github/push_results.sh"


def test_push_results(tmp_path: Path) -> None:
    """New results are one commit on the branch; without any there is none."""
    remote, checkout = tmp_path / "remote.git", tmp_path / "checkout"
    identity = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def run(*words: str | Path, cwd: Path = tmp_path) -> str:
        environment = {**os.environ, **identity}
        done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    run("git", "init", "--quiet", "--bare", "--initial-branch=results", remote)
    run("git", "clone", "--quiet", remote, checkout)
    (checkout / "results").mkdir()
    for number, (file, expected) in enumerate({"results/a": 1, "notes": 1, "results/b": 2}.items()):
        (checkout / file).write_text(str(number), encoding="utf-8")
        said = run(SCRIPT, checkout)
        assert (said == "nothing new") is (file == "notes")
        assert run("git", "rev-list", "--count", "results", cwd=remote) == str(expected)
    assert run("git", "ls-tree", "-r", "--name-only", "results", cwd=remote).split() == ["results/a", "results/b"]
