"""`kernelwatch init`: begins to watch the kernels of a git repository. What is there already stays as it is.

`kernelwatch provide FOLDER`, which the configuration of asv that it writes calls, lets an environment import this
library from where it is installed.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from kernelwatch import guesses, project
from kernelwatch.guesses import Found
from kernelwatch.store import git
from kernelwatch.store.git import GitError
from ptxcount import whole

_CONFIGURATION = """\
{{
    "version": 1,
    "project": "{project}",
    "project_url": "watch/index.html",
    "show_commit_url": "watch/commit.html#",
    "repo": ".",
    "branches": ["{branch}"],
    "dvcs": "git",
    "plugins": [".kernelwatch.runner.plugin", ".kernelwatch.show.site.publisher"],
    "environment_type": "virtualenv",
    "pythons": ["3"],
    "build_command": [],
    "install_command": [{install}],
    "uninstall_command": [],
    "launch_method": "forkserver",
    "benchmark_dir": "benchmarks",
    "env_dir": ".asv/env",
    "results_dir": "results",
    "html_dir": "html"
}}
"""

_BENCHMARKS = '''\
"""The kernels that are watched. Names of kernels and of axes are those of stored results: add, do not rename."""

from kernelwatch import Kernel, in_and_out, inputs, outputs, scalar, watch

'''

#: What asv and this library make in a repository.
_IGNORED = (".asv/", "__pycache__/", "/html/", "*.unfinished", "run.lock")

#: The compiler that workflows install, as README.md says it.
_NVCC = "cuda-toolkit[nvcc,cudart,crt,nvvm,cccl]==13.0.2"

_NONE_FOUND = """\
# No .cu or .cuh file has a kernel. A text of CUDA C++, or PTX, that a package makes is watched like this:
#
# blur = Kernel(
#     "blur",
#     text="package.module:NAME",  # a text, or a function that returns one; ptx= for PTX
#     arguments=[outputs("out", "n", "float32"), inputs("image", "n", "float32"), "n"],
#     block=256,
#     over=("n",),
# )
# globals().update(watch(blur, {"n": [4096]}))
#
# Of Numba: ptx= a function of your package that returns numba.cuda.compile_ptx(function, types, cc=..., lineinfo=True),
# and arguments=numba_arguments(...), which kernelwatch has, too, of the same.
"""


def main(words: Sequence[str] | None = None) -> int:
    """Write what is not there yet; return 0, or 1 where this is no git repository."""
    parser = argparse.ArgumentParser("kernelwatch init", description=__doc__)
    parser.add_argument(
        "--workflows",
        metavar="URL",
        help="also write workflows for GitHub, which install this library from git+https://HOST/REPOSITORY@COMMIT",
    )
    options = parser.parse_args(words)
    try:
        root = Path(git.text(Path.cwd(), "rev-parse", "--show-toplevel"))
    except GitError:
        print("kernelwatch init: this is no git repository; run: git init", file=sys.stderr)
        return 1
    every = {each.name: each for each in guesses.kernels(root)}.values()
    found = [each for each in every if any(one.is_array for one in each.parameters)]
    for each in (one for one in every if one not in found):
        print(f"{each.file}: {each.name} takes no array by a pointer of its own: it cannot be watched")
    files = _files(root, found)
    if options.workflows:
        written = _workflows(_branch(root), options.workflows)
        files |= {f".github/workflows/{name}": text for name, text in written}
    for name, text in files.items():
        path = root / name
        if path.exists():
            print(f"{name} is there: not changed")
        else:
            path.parent.mkdir(exist_ok=True, parents=True)
            whole.write(path, text)
            print(f"{name} written")
    _ignore(root / ".gitignore")
    todo = "decide what benchmarks/kernels.py marks TODO" if found else "declare kernels in benchmarks/kernels.py"
    print(f"{len(found)} kernels found; next: {todo}, commit, and run: asv run --record-samples HEAD^!")
    return 0


def _files(root: Path, found: Sequence[Found]) -> dict[str, str]:
    is_package = any((root / name).is_file() for name in ("pyproject.toml", "setup.py"))
    steps = ['"in-dir={env_dir} /usr/bin/env kernelwatch provide {env_dir}"']
    if is_package:
        steps.append('"in-dir={env_dir} python -m pip install --quiet --no-deps --force-reinstall {build_dir}"')
    install = ",\n                        ".join(steps)
    return {
        "asv.conf.json": _CONFIGURATION.format(project=root.name, branch=_branch(root), install=install),
        "benchmarks/__init__.py": "",
        "benchmarks/kernels.py": _BENCHMARKS + ("\n".join(map(Found.written, found)) or _NONE_FOUND),
    }


def _branch(root: Path) -> str:
    """Return the branch whose history is kept: the remote's own, else that which is checked out, else main."""
    for words in (("symbolic-ref", "--short", "refs/remotes/origin/HEAD"), ("symbolic-ref", "--short", "HEAD")):
        with suppress(GitError):
            return git.text(root, *words).removeprefix("origin/")
    return "main"


def _ignore(path: Path) -> None:
    """Add to .gitignore what it lacks."""
    text = path.read_bytes() if path.exists() else b""
    known = {line.strip().strip(b"/") for line in text.splitlines()}
    if missing := [line for line in _IGNORED if line.strip("/").encode() not in known]:
        added = "".join(f"{line}\n" for line in missing).encode()
        whole.write(path, text.rstrip(b"\n") + b"\n" + added if text else added)
        print(f".gitignore: added {' '.join(missing)}")


def _workflows(branch: str, library: str) -> Iterator[tuple[str, str]]:
    for path in sorted((Path(__file__).parent / "workflows").glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        for mark, value in {"@BRANCH@": branch, "@LIBRARY@": library, "@NVCC@": _NVCC}.items():
            text = text.replace(mark, value)
        yield path.name, text


def provide(words: Sequence[str] | None = None) -> int:
    """Let an environment import what this Python does, after its own packages."""
    parser = argparse.ArgumentParser("kernelwatch provide")
    parser.add_argument("folder", type=Path, help="the environment's")
    folder = parser.parse_args(words).folder
    lines = dict.fromkeys([*project.libraries(), sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]])
    (packages,) = list(folder.glob("lib/python3*/site-packages"))[:1]
    (packages / "kernelwatch.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0
