"""`kernelwatch init`: begins to watch the kernels of a git repository. What is there already stays as it is.

`kernelwatch provide FOLDER`, which the configuration of asv that it writes calls, lets an environment import this
library from where it is installed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from kernelwatch import project
from kernelwatch.store import git
from kernelwatch.store.git import GitError

_KERNEL = re.compile(
    r"(template\s*<(?P<template>[^>]*)>\s*)?(extern\s+\"C\"\s+)?__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+"
    r"(?:__launch_bounds__\s*\([^)]*\)\s*)?(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)\s*\{",
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

#: C++ types -> NumPy's dtypes.
_DTYPES = {
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "long": "int64",
    "long long": "int64",
    "unsigned long long": "uint64",
    "size_t": "uint64",
    "int32_t": "int32",
    "uint32_t": "uint32",
    "int64_t": "int64",
    "uint8_t": "uint8",
    "__half": "float16",
    "half": "float16",
    "__nv_bfloat16": "bfloat16",
}

_CONFIGURATION = """\
{{
    "version": 1,
    "project": "{project}",
    "project_url": "index.html",
    "repo": ".",
    "branches": ["{branch}"],
    "dvcs": "git",
    "plugins": [".kernelwatch.asv.plugin", ".kernelwatch.show.site.publisher"],
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

_WATCHED = """\
# TODO: shapes, dtypes, the grid and the sizes are guesses; reference=a function of NumPy arrays verifies the outputs.
{name} = Kernel(
    "{name}",
    file="{file}",{entry}
    arguments=[{arguments}],
    block=256,
    over=("{over}",),
)
globals().update(watch({name}, {{{axes}}}))
"""


#: What asv and this library make in a repository.
_IGNORED = (".asv/", "__pycache__/", "/html/", "/results-local/", "*.unfinished", "run.lock", "run.holder")

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
"""


class Found(NamedTuple):
    """A kernel in a file: its name, the parameters of its template, and those of itself, as written."""

    file: str
    name: str
    template: tuple[str, ...]
    parameters: tuple[str, ...]


def kernels(root: Path) -> Iterator[Found]:
    """Yield the kernels of all files that git tracks and nvcc compiles."""
    listed = git.text(root, "ls-files", "--cached", "--others", "--exclude-standard", "*.cu", "*.cuh")
    for file in listed.splitlines():
        text = _COMMENT.sub("", (root / file).read_text(encoding="utf-8", errors="replace"))
        for match in _KERNEL.finditer(text):
            split = (re.split(r"\s*,\s*", (match[each] or "").strip()) for each in ("template", "parameters"))
            template, own = (tuple(each for each in several if each) for several in split)
            yield Found(file, match["name"], template, own)


def declared(found: Found, over: str) -> tuple[list[str], list[str]]:
    """Return the arguments of a kernel as its declaration has them, and the names of its scalars."""
    arguments, scalars = [], []
    for parameter in found.parameters:
        name = re.findall(r"\w+", parameter)[-1]
        kind = re.sub(r"\b(const|__restrict__|restrict|struct|volatile)\b|[*&]|\b\w+$", " ", parameter)
        dtype = _DTYPES.get(" ".join(kind.split()))
        swept = "" if dtype is None else f', "{dtype}"'
        if "*" in parameter:
            way = "inputs" if re.search(r"\bconst\b", parameter) else "in_and_out"
            arguments.append(f'{way}("{name}", "{over}"{swept})')
        else:
            arguments.append(f'"{name}"')
            scalars.append(name)
    return arguments, scalars


def written(found: Found) -> str:
    """Return what watches a kernel, as far as its text tells."""
    _, scalars = declared(found, "n")
    over = next((name for name in ("n", "size", "count", "length") if name in scalars), [*scalars, "n"][0])
    arguments, _ = declared(found, over)
    types = [each.startswith(("typename", "class")) for each in found.template]
    values = ", ".join("{T}" if is_type else "1" for is_type in types)
    entry = f'\n    entry="{found.name}<{values}>",' if found.template else ""
    names = list(dict.fromkeys([over, *scalars]))
    axes = ", ".join(f'"{name}": [{4096 if name == over else 1}]' for name in names)
    said = ", ".join(arguments)
    return _WATCHED.format(name=found.name, file=found.file, entry=entry, arguments=said, over=over, axes=axes)


def main(words: Sequence[str] | None = None) -> int:
    """Write what is not there yet; return 0, or 1 where this is no git repository, or nobody knows the library's."""
    parser = argparse.ArgumentParser("kernelwatch init", description=__doc__)
    parser.add_argument("--workflows", action="store_true", help="also write workflows for GitHub")
    parser.add_argument(
        "--library", metavar="URL", help="where workflows install this library from: git+https://HOST/REPOSITORY@COMMIT"
    )
    options = parser.parse_args(words)
    try:
        root = Path(git.text(Path.cwd(), "rev-parse", "--show-toplevel"))
    except GitError:
        print("kernelwatch init: this is no git repository; run: git init", file=sys.stderr)
        return 1
    found = list({each.name: each for each in kernels(root)}.values())
    files = _files(root, found)
    if options.workflows:
        library = options.library or _library()
        if not library:
            print(
                "kernelwatch init: workflows install this library from a git repository, and it was not installed from "
                "one with an address; give --library git+https://HOST/REPOSITORY@COMMIT",
                file=sys.stderr,
            )
            return 1
        files |= {f".github/workflows/{name}": text for name, text in _workflows(_branch(root), library)}
    for name, text in files.items():
        path = root / name
        if path.exists():
            print(f"{name} is there: not changed")
        else:
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text, encoding="utf-8")
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
        "benchmarks/kernels.py": _BENCHMARKS + ("\n".join(map(written, found)) or _NONE_FOUND),
    }


def _branch(root: Path) -> str:
    """Return the branch whose history is kept: the remote's own, else that which is checked out, else main."""
    for words in (("symbolic-ref", "--short", "refs/remotes/origin/HEAD"), ("symbolic-ref", "--short", "HEAD")):
        with suppress(GitError):
            return git.text(root, *words).removeprefix("origin/")
    return "main"


def _ignore(path: Path) -> None:
    """Add to .gitignore what it lacks."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    known = {line.strip().strip("/") for line in text.splitlines()}
    if missing := [line for line in _IGNORED if line.strip("/") not in known]:
        path.write_text("".join((text.rstrip("\n") + "\n" if text else "", *(f"{line}\n" for line in missing))))
        print(f".gitignore: added {' '.join(missing)}")


def _library() -> str:
    """Return where this library was installed from, as pip takes it; empty where that has no address on the network."""
    noted = json.loads(distribution("kernelwatch").read_text("direct_url.json") or "{}")
    url, commit = str(noted.get("url", "")), str(noted.get("vcs_info", {}).get("commit_id", ""))
    if url.startswith("file://"):
        with suppress(GitError):
            folder = Path(url2pathname(urlsplit(url).path))
            url = git.text(folder, "remote", "get-url", "origin")
            commit = git.text(folder, "rev-parse", "HEAD")
    return f"git+{url}@{commit}" if url.startswith("https://") and commit else ""


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
