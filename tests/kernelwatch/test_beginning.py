"""`kernelwatch init`: the files that it writes, and those that it leaves unchanged."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.cli import init, provide
from kernelwatch.errors import NvccNotFoundError
from tests import commits
from tests.workflows.test_workflows import ACTIONS

SOURCE = "__global__ void scale(float* out, const float* in, int n) {}\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with a kernel in an uncommitted file. The branch is `trunk`."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=trunk"], cwd=tmp_path, check=True)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "a.cu").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


LIBRARY = "git+https://example.org/library@0123456789012345678901234567890123456789"


@pytest.mark.parametrize(("results", "html"), [("", ""), ("perf/numbers", "perf/site"), ("$(id)", "html")])
def test_workflows_are_valid_or_fail(
    results: str, html: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if results:
        configuration = {"version": 1, "repo": ".", "results_dir": results, "html_dir": html}
        (repository / "asv.conf.json").write_text(json.dumps(configuration))
    if results == "$(id)":
        assert init.main(["--workflows", LIBRARY]) == 2
        assert "a workflow cannot contain the results name '$(id)'; rename it" in capsys.readouterr().err
        return
    assert init.main(["--workflows", LIBRARY]) == 0
    workflows = {path.name: path.read_text() for path in (repository / ".github" / "workflows").iterdir()}
    assert len(workflows) == 2
    for text in workflows.values():
        assert "secrets." not in text
        assert "origin/trunk" in text or "ref: trunk" in text
        assert not re.search(r"@[A-Z]+@", text)
        uses = re.findall(r"uses: (\S+) # (\S+)", text)
        assert uses
        assert set(uses) <= set(ACTIONS.items())
    assert f"kernelwatch @ {LIBRARY}#subdirectory=kernelwatch" in workflows["kernelwatch-review.yml"]
    history = workflows["kernelwatch-history.yml"]
    folders = re.findall(r"(?:add --force|-results\"? --) (\S+)", history)
    assert folders == [results or "results"] * 5, "a command of git names another folder"
    assert f"path: {html or 'html'}\n" in history
    for linter in (["actionlint"], ["zizmor", "--quiet", "--offline", "--strict-collection", "."]):
        if linter_path := shutil.which(linter[0], path=str(Path(sys.executable).parent)):
            subprocess.run([linter_path, *linter[1:]], cwd=repository, check=True)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_existing_contents_stay(encoding: str, repository: Path) -> None:
    (repository / "asv.conf.json").write_text("mine")
    text = "süß\nhtml".encode(encoding)
    (repository / ".gitignore").write_bytes(text)
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "kernelwatch", "init"]
    options: Any = {"cwd": repository, "env": environment, "text": True}
    first, second = (subprocess.check_output(command, **options) for _ in range(2))
    assert "asv.conf.json exists: not changed\nbenchmarks/__init__.py written" in first
    assert "benchmarks/kernels.py exists: not changed" in second
    assert (repository / "asv.conf.json").read_text() == "mine"
    assert (repository / ".gitignore").read_bytes() == text + b"\n.asv/\n__pycache__/\n*.unfinished\nrun.lock\n"


def test_unclosed_quote_in_flags_is_refused(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        init.main(["--flags='"])
    assert '--flags: flags "\'" cannot be split: No closing quotation; write them as on nvcc' in capsys.readouterr().err
    assert not (repository / "benchmarks").exists()


def test_missing_compiler_is_an_error(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file "No kernel was found" would be wrong."""
    monkeypatch.setenv("NVCC", str(repository / "no-nvcc"))
    with pytest.raises(NvccNotFoundError, match="no-nvcc is not an executable; set it to the path of nvcc"):
        init.main([])
    assert not (repository / "benchmarks").exists()


@pytest.mark.parametrize("changed", [False, True])
def test_second_call_finds_kernels(changed: bool, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "include" / "a.cu").rename(repository / "a.txt")
    assert init.main([]) == 0
    stub = repository / "benchmarks" / "kernels.py"
    compile(stub.read_text(), "kernels.py", "exec")
    assert "# class Blur(kw.Watched):" in stub.read_text()
    if changed:
        stub.write_text(stub.read_text() + "# mine\n")
    (repository / "a.txt").rename(repository / "a.cu")
    assert init.main([]) == 0
    printed = capsys.readouterr().out
    advice = "kernels.py does not watch scale; add these classes, and replace the guesses:\n\nclass Scale(kw.Watched)"
    if changed:
        assert "class Scale(kw.Watched)" not in stub.read_text()
        assert advice in printed
    else:
        assert "class Scale(kw.Watched)" in stub.read_text()
        assert advice not in printed


URL = "git+https://example.org/a/b@v1.0"

#: Case -> commands of git, options of `init`, and the branch in asv.conf.json or a part of the error.
SITUATIONS = {
    "a branch of any name": ("", [], "trunk"),
    "a branch beside main": ("branch main\nswitch -qc work", [], "main"),
    "master": ("branch -m master\nswitch -qc work", [], "master"),
    "the remote's own": ("branch main\nsymbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/trunk", [], "trunk"),
    "a remote's that is not here": ("symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/other", [], "trunk"),
    "detached": ("branch main\nswitch -q --detach", [], "main"),
    "detached, without main": ("switch -q --detach", [], "not on a branch, and there is no branch main or master"),
    "without a commit": ("update-ref -d HEAD", [], "trunk"),
    "a name with a quote": ("branch -m it's\"ß", [], "it's\"ß"),
    "no repository": ("version", [], "git init"),
    "a name that a shell runs": ("branch -m work$(id)", ["--workflows", URL], "contain the branch name 'work$(id)'"),
    "a name with a slash": ("branch -m feature/a-1", ["--workflows", URL], "feature/a-1"),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_branch_of_asv_is_found(
    name: str, repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commits.commit(commits.set_identity(repository))
    commands, words, expected = SITUATIONS[name]
    for command in commands.splitlines():
        subprocess.run(["git", *command.split(" ")], cwd=repository, check=True)
    if name == "no repository":
        shutil.rmtree(repository / ".git")
    monkeypatch.chdir(repository / "include")
    code = init.main(words)
    if (repository / "asv.conf.json").exists():
        configuration = json.loads((repository / "asv.conf.json").read_text(encoding="utf-8"))
        assert (code, configuration["branches"], configuration["project"]) == (0, [expected], repository.name)
    else:
        assert code == 2
        assert expected in capsys.readouterr().err
        assert not (repository / "benchmarks").exists()


@pytest.mark.parametrize(
    "url",
    [
        "", "https://example.org/a/b", "git+https://example.org/a/b", "git+ssh://git@example.org/a/b@v1", "../library",
        "git+https://example.org/a/b@v1#subdirectory=x", "git+https://example.org/a/b@v 1", f"{URL}' && id '",
    ],
)  # fmt: skip
def test_uninstallable_library_is_refused(url: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        init.main(["--workflows", url])
    assert "pip cannot install this; give git+https://HOST/REPOSITORY@COMMIT" in capsys.readouterr().err
    assert not (repository / "benchmarks").exists()


def test_shallow_clone_in_a_quoted_folder(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commits.commit(commits.set_identity(repository))
    clone = tmp_path / 'a "b" ß'
    subprocess.run(["git", "clone", "--quiet", "--depth=1", repository.as_uri(), str(clone)], check=True)
    monkeypatch.chdir(clone)
    assert init.main([]) == 0
    configuration = json.loads((clone / "asv.conf.json").read_text(encoding="utf-8"))
    assert (configuration["project"], configuration["branches"]) == ('a "b" ß', ["trunk"])
    assert "git fetch --unshallow" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["kernelwatch init", "kernelwatch measure HEAD~1 HEAD", "asv run HEAD^!"])
def test_error_of_git_is_shown(command: str, repository: Path) -> None:
    assert init.main([]) == 0
    commits.commit(commits.set_identity(repository))
    environment = os.environ | {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1", "HOME": str(repository)}
    words = [sys.executable, "-m", *command.split()]
    done = subprocess.run(words, cwd=repository, env=environment, capture_output=True, text=True)
    assert done.returncode in (1, 2)
    output = done.stdout + done.stderr
    assert "git config --global --add safe.directory" in output
    assert not [text for text in ("git init", "Traceback", "unexpected, at") if text in output]


def test_environment_of_asv_gets_the_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The commit's package is installed, too. If pip fails, it is called again without build isolation."""
    monkeypatch.setattr(sys, "path", ["/usr/lib/python3/dist-packages", "/usr/lib/python3.11", *sys.path])
    packages, commit, python = (tmp_path / path for path in ("lib/python3.11/site-packages", "c", "bin/python"))
    for folder in (packages, commit, python.parent):
        folder.mkdir(parents=True)
    assert provide.provide_libraries([str(tmp_path), str(commit)]) == 0
    lines = (packages / "kernelwatch.pth").read_text().splitlines()
    assert "/usr/lib/python3/dist-packages" in lines
    assert "/usr/lib/python3.11" not in lines, "the standard library is no package"
    (commit / "pyproject.toml").touch()
    python.write_text('#!/bin/sh\necho "$@"\ncase "$*" in *isolation) exit $CODE;; esac\nexit 3\n')
    python.chmod(0o755)
    for code in (0, 4):
        monkeypatch.setenv("CODE", str(code))
        assert provide.provide_libraries([str(tmp_path), str(commit)]) == code
        install = f"-m pip install --quiet --no-deps --force-reinstall {commit}"
        assert capfd.readouterr().out.splitlines() == [install, f"{install} --no-build-isolation"]
    with pytest.raises(SystemExit):
        provide.provide_libraries([str(packages)])
    assert "give the folder of an environment" in capfd.readouterr().err
