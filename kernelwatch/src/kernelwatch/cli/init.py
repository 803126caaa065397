"""Start watching the kernels of a git repository. Files that you wrote are kept; .gitignore gets missing lines."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kernelwatch.cli.failures import FAILED_CODE
from kernelwatch.config import project_root
from kernelwatch.errors import UnknownFlagsError
from kernelwatch.kernel.launch import split_flags
from kernelwatch.scaffold import find_kernels, parse_launches, write_classes
from kernelwatch.scaffold.find_kernels import KernelCandidate
from kernelwatch.scaffold.include_graph import Inclusions
from kernelwatch.scaffold.parse_launches import HostLaunch
from kernelwatch.store import asv_files, git
from kernelwatch.store.git import GitError
from ptxcount.util import atomic_write
from ptxcount.util.grammar import count_noun

_TEMPLATES = Path(__file__).parents[1] / "scaffold" / "templates"

#: Text of benchmarks/kernels.py for a repository without kernels. A later `kernelwatch init` replaces an unchanged one.
_STUB = (_TEMPLATES / "no_kernels.txt").read_text(encoding="utf-8")

#: Lines for .gitignore: files that asv and this library create in a repository.
_IGNORED = (".asv/", "__pycache__/", "/html/", "*.unfinished", "run.lock")

#: Requirement of the compiler that workflows install, as in README.md.
_NVCC = "cuda-toolkit[nvcc,cudart,crt,nvvm,cccl]==13.0.2"

#: Pattern of a URL from which pip can install without credentials: a commit, a tag or a branch of a repository.
_LIBRARY = re.compile(r"git\+https://[\w.-]+(:\d+)?(/[\w.~-]+)+@[\w.+-]+(/[\w.+-]+)*")

#: Pattern of a branch or folder without special characters of shells and YAML.
_NAME = re.compile(r"[\w+-][\w./+-]*")


def main(words: Sequence[str] | None = None) -> int:
    """Write missing files, replace an unchanged _STUB, extend .gitignore; return the exit code."""
    parser = argparse.ArgumentParser("kernelwatch init", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--flags", default="", help="options of nvcc, such as --flags='-I include -DN=4'")
    parser.add_argument(
        "--workflows",
        metavar="URL",
        help="also write workflows for GitHub, which install this library from git+https://HOST/REPOSITORY@COMMIT",
    )
    options = parser.parse_args(words)
    if options.workflows is not None and not _LIBRARY.fullmatch(options.workflows):
        parser.error(
            f"--workflows {options.workflows!r}: pip cannot install this; give git+https://HOST/REPOSITORY@COMMIT"
        )
    try:
        flags = split_flags(options.flags)
    except UnknownFlagsError as error:
        parser.error(f"--flags: {error}")
    try:
        root = Path(git.text(Path.cwd(), "rev-parse", "--show-toplevel"))
        classes = dict(_iter_classes(root, flags))
        files = _plan_files(root, list(classes.values()), options.workflows or "")
    except (GitError, ValueError) as error:
        advice = "; run: git init" if "not a git repository" in str(error) else ""
        print(f"kernelwatch init: {error}{advice}", file=sys.stderr)
        return FAILED_CODE
    for name, text in files.items():
        path = root / name
        is_missing = not path.exists()
        if is_missing or (text != _STUB and path.read_bytes() == _STUB.encode()):
            path.parent.mkdir(exist_ok=True, parents=True)
            atomic_write.write(path, text)
            print(f"{path if Path.cwd() != root else name} written")
            continue
        print(f"{name} exists: not changed")
        if name == "benchmarks/kernels.py":
            _print_unwatched(classes, path.read_text(encoding="utf-8", errors="replace"))
    _extend_gitignore(root / ".gitignore")
    if git.is_shallow(root):
        print("this clone is shallow; to measure older commits, run: git fetch --unshallow")
    todo = "replace the guesses marked TODO" if "TODO" in files["benchmarks/kernels.py"] else "declare kernels"
    print(f"next: {todo} in benchmarks/kernels.py, commit, and run: asv run --record-samples HEAD^!")
    return 0


def _print_unwatched(classes: Mapping[str, str], text: str) -> None:
    names = [kernel for kernel in classes if not re.search(rf"\b{kernel}\b", text)]
    if names:
        print(f"benchmarks/kernels.py does not watch {', '.join(names)}; add these classes, and replace the guesses:\n")
        print("\n\n".join(classes[kernel] for kernel in names))


def _plan_files(root: Path, classes: Sequence[str], library: str) -> dict[str, str]:
    """Return the files to write: name -> text. Without a URL of the `library`, there are no workflows.

    Raises ValueError if `_choose_branch` finds none, or a name would make a workflow invalid.
    """
    path = root / project_root.CONFIG_FILE
    has_configuration = library and path.exists()
    configuration = asv_files.load_configuration(path) if has_configuration else asv_files.Configuration(".")
    names = {"BRANCH": _choose_branch(root), "RESULTS": configuration.results_dir, "HTML": configuration.html_dir}
    for kind, name in names.items():
        if library and not _NAME.fullmatch(name):
            raise ValueError(
                f"a workflow cannot contain the {kind.lower()} name {name!r}; rename it, or leave out --workflows"
            )
    project, branch = (json.dumps(text, ensure_ascii=False) for text in (root.name, names["BRANCH"]))
    text = "\n\n".join(classes)
    numpy = "import numpy as np\n" if "np.ones(" in text else ""
    return {
        "asv.conf.json": _fill_template("asv.conf.json", PROJECT=project, BRANCH=branch),
        "benchmarks/__init__.py": "",
        "benchmarks/kernels.py": _fill_template("kernels.txt", NUMPY=numpy, CLASSES=text) if classes else _STUB,
        **{
            f".github/workflows/{path.name}": _fill_template(path.name, **names, LIBRARY=library, NVCC=_NVCC)
            for path in sorted(_TEMPLATES.glob("*.yml"))
            if library
        },
    }


def _fill_template(template: str, **values: str) -> str:
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda mark: values[mark[1]], text)


def _iter_classes(root: Path, flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each kernel and the text of its class; print why others are left out."""
    texts = find_kernels.read_sources(root)
    candidates, omitted = find_kernels.find_kernels(root, texts, flags)
    problems = [(candidate, write_classes.find_problem(candidate)) for candidate in candidates]
    kernels = [candidate for candidate, problem in problems if not problem]
    omitted += [f"{candidate.place}: {candidate.name}: {problem}" for candidate, problem in problems if problem]
    for line in omitted:
        print(f"left out: {line}")
    print(f"{count_noun(len(kernels), 'kernel')} found, {len(omitted)} left out")
    launches = [*_iter_launches(texts)]
    for kernel, name in zip(kernels, write_classes.name_kernels(kernels), strict=True):
        yield name, write_classes.write_class(kernel, name, _choose_launch(kernel, candidates, launches), flags)


def _iter_launches(texts: Mapping[str, str]) -> Iterator[HostLaunch]:
    inclusions = Inclusions(texts)
    for file, text in texts.items():
        if "<<<" in text:
            _, *included_files = inclusions.list_included(file).files
            included = "\n".join(texts[name] for name in reversed(included_files))
            yield from parse_launches.iter_launches(file, text, included)


def _choose_launch(
    kernel: KernelCandidate, candidates: Sequence[KernelCandidate], launches: Sequence[HostLaunch]
) -> HostLaunch | None:
    """Return the kernel's launch with the most known extents of the block; None without a launch.

    Launches in other files count only if no other kernel has the same name.
    """
    last = kernel.name.rpartition("::")[2]
    has_unique_name = sum(candidate.name.rpartition("::")[2] == last for candidate in candidates) == 1
    fitting = [launch for launch in launches if launch.name == last and launch.arguments == len(kernel.parameters)]
    own_launches = [launch for launch in fitting if launch.file in (kernel.file, kernel.unit.file) or has_unique_name]
    return max(own_launches, key=lambda launch: len(launch.block), default=None)


def _choose_branch(root: Path) -> str:
    """Return the remote's default branch, main or master, the first that is a local branch; else the branch of HEAD."""
    local = git.text(root, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()
    remote = git.try_text(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD") or ""
    current = git.try_text(root, "symbolic-ref", "--short", "HEAD") or ""
    branches = [branch for branch in (remote.removeprefix("origin/"), "main", "master") if branch in local]
    if not (branches or current):
        raise ValueError("HEAD is not on a branch, and there is no branch main or master; run: git switch BRANCH")
    return [*branches, current][0]


def _extend_gitignore(path: Path) -> None:
    text = path.read_bytes() if path.exists() else b""
    ignored = {line.strip().strip(b"/") for line in text.splitlines()}
    if missing := [line for line in _IGNORED if line.strip("/").encode() not in ignored]:
        added = "".join(f"{line}\n" for line in missing).encode()
        atomic_write.write(path, text.rstrip(b"\n") + b"\n" + added if text else added)
        print(f".gitignore: added {' '.join(missing)}")
