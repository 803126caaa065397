"""Kernels that changed because of another version of a PTX generator, not because of a commit."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelwatch.review.pairing import ConfigurationFacts
from kernelwatch.store import git
from kernelwatch.suite import registry
from kernelwatch.workflow import load_review
from tests.stored import BASE, HEAD, TIME, Suite, review_as_json, samples, write


@pytest.mark.parametrize(
    ("versions", "changed_file", "hashes", "is_noted"),
    [
        (("3.8.0", "3.9.0"), "kernels/norms.py", "ab", True),
        (("3.8.0", "3.9.0"), "src/kernels/adds.py", "ab", False),  # the kernel's own
        (("3.8.0", "3.9.0"), None, "ab", False),  # git does not know the commits
        (("3.8.0", "3.9.0"), "kernels/norms.py", "aa", False),
        (("3.9.0", "3.9.0"), "kernels/norms.py", "ab", False),
        ((None, "3.9.0"), "kernels/norms.py", "ab", False),
        (("3.8.0 13.0", "3.9.0 13.5"), "kernels/norms.py", "ab", False),  # with another compiler, which may have
    ],
)
def test_another_generator(
    versions: tuple[str | None, str], changed_file: str | None, hashes: str, is_noted: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A kernel whose file is the same, and whose machine code is not, changed by its generator."""
    kernel = SimpleNamespace(is_generated=True, origin=Path("kernels/adds.py"))
    suite = SimpleNamespace(kernels=lambda: {TIME: kernel, "other": kernel})
    monkeypatch.setattr(registry, "current_suite", lambda: suite)
    monkeypatch.setattr(load_review, "describe_configuration", lambda *_: ConfigurationFacts(TIME, "add float32 -O3"))
    monkeypatch.setattr(git, "try_text", lambda folder, *words: changed_file if words[0] == "diff" else None)
    results: Suite = {commit: {TIME: {"one": samples(1e-3)}} for commit in (BASE, HEAD)}
    folder = write(tmp_path, results) / "results" / "gpu"
    runs, cubins = [], []
    for commit, version, code_hash in zip((BASE, HEAD), versions, hashes, strict=True):
        triton, _, nvcc = (version or "").partition(" ")
        runs.append({"commits": [commit], "nvcc": nvcc, "generators": {"triton": triton} if triton else {}})
        cubins.append({"commit": commit, "arch": "sm_90", "cubins": {"add, float32, -O3": code_hash}})
    for name, lines in (("runs", runs), ("cubins", cubins)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    notes = review_as_json(tmp_path, capsys)[1]["notes"]
    note = f"changed by another version of the PTX generator, as both commits have the same files: {TIME}"
    assert (note in notes) is is_noted
