"""The package alone: imports, and installation with NumPy only."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import ptxcount
from tests.ptxcount import sources

ROOT = Path(__file__).parents[2] / "ptxcount"
PACKAGE = Path(ptxcount.__file__).parent


def _iter_imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the full names of absolute imports: ``a.b`` for ``from a import b``."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_package_imports_its_dependencies() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if file.stem != "pytest_plugin"]
    trees = {file: ast.walk(ast.parse(file.read_text(encoding="utf-8"))) for file in files}
    imports = {(name.partition(".")[0], file) for file, nodes in trees.items() for name in _iter_imports(nodes)}
    (reader,) = [file for name, file in imports if name == "elftools"]  # optional
    assert reader.relative_to(PACKAGE) == Path("source", "kernel_sources.py")
    names = {name for name, _ in imports} - {"elftools"}
    assert "numpy" in names
    assert names - {"msgspec", "numpy", "platformdirs", "tomli"} <= sys.stdlib_module_names
    script = "import sys, numpy; before = {*sys.modules}; import ptxcount.command_line; print(*{*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd="/")
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded - {"ptxcount", "numpy"} <= sys.stdlib_module_names, "a command loads others only on demand"


def test_patterns_need_python_3_10_only() -> None:
    """Possessive quantifiers and atomic groups came with Python 3.11."""
    parser = pytest.importorskip("re._parser")
    folders = [ROOT / "src", ROOT.parent / "kernelwatch" / "src"]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for folder in folders for file in folder.rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    patterns = [call.args[0] for call in calls if ast.unparse(call.func) == "re.compile"]
    texts = [pattern.value for pattern in patterns if isinstance(pattern, ast.Constant)]
    assert all(re.search("POSSESSIVE|ATOMIC", repr(parser.parse(text))) for text in [r"a*+", r"(?>a)"])
    assert [text for text in texts if re.search("POSSESSIVE|ATOMIC", repr(parser.parse(text)))] == []
    assert len(texts) > 100


def test_modules_load_on_demand() -> None:
    script = f"""
import sys
import numpy as np
import ptxcount
arguments = [np.zeros(32, "f4"), np.ones((32, 4), "f4"), *np.int32([32, 4])]
ptxcount.count({sources.ptx("row_sums")!r}, None, 1, 32, arguments)
families = tuple(f"ptxcount.isa.{{family}}" for family in ("hopper", "textures", "tensor_cores"))
rest = [name for name in sys.modules if name.startswith(families)]
assert not rest, rest
assert ptxcount.TensorMap.__module__ == "ptxcount.isa.hopper.tensor_maps" and ptxcount.Surface and ptxcount.Texture
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd="/")


@pytest.fixture
def empty_environment(tmp_path: Path) -> Path:
    """Create a virtual environment that links this one's NumPy; return its folder of programs."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    for package in (Path(np.__file__).parent, *Path(np.__file__).parents[1].glob("numpy.libs")):
        (Path(paths["purelib"]) / package.name).symlink_to(package)
    return Path(paths["scripts"])


def test_installed_package_is_typed_and_runs(empty_environment: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(ROOT, tmp_path / "copied", ignore=shutil.ignore_patterns("*.egg-info", "build"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    python = str(empty_environment / "python")
    if find_spec("setuptools") is None:  # importing it fails behind an import of distutils
        pytest.skip("setuptools is missing; the test builds with this environment's, without downloads")
    lent = {**clean, "PYTHONPATH": sysconfig.get_path("purelib")}
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, str(copied)], check=True, capture_output=True, env=lent)
    script = "import ptxcount as p, importlib.metadata as m; print(p.__file__, m.distribution('ptxcount').entry_points)"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, cwd=empty_environment, env=clean)
    assert "value='ptxcount.pytest_plugin'" in done.stdout, done.stderr
    package = Path(done.stdout.split()[0]).parent
    assert (package / "pytest_plugin.py").is_file()
    assert all((package / name).is_file() for name in ("py.typed", "count.schema.json", "gate/check.schema.json"))
    ptx = tmp_path / "sums.ptx"
    ptx.write_text(sources.ptx("row_sums"))
    words = "--entry row_sums --grid 1 --block 32 s=float32[32] m=float32[32,4] int32:32 int32:4"
    command = [str(empty_environment / "ptxcount"), str(ptx), *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=clean)
    assert done.returncode == 0, done.stderr
    assert ["load", "4", "64", "16.00", "4.00"] in [line.split() for line in done.stdout.splitlines()]


def test_tests_need_numpy_and_pytest() -> None:
    """Imports within functions may need more."""
    root, folder = ROOT.parent, Path(__file__).parent
    pending, seen, packages = [root / "tests" / "conftest.py", *folder.rglob("*.py")], set[Path](), set[str]()
    while pending:
        file = pending.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        for name in _iter_imports(ast.parse(file.read_text(encoding="utf-8")).body):
            path = root / name.replace(".", "/")
            pending += [path.with_suffix(".py"), path.parent.with_suffix(".py")]
            packages.add(name.partition(".")[0])
    assert root / "tests" / "gpu" / "launches.py" in seen, "files that tests import are read, too"
    assert packages - sys.stdlib_module_names <= {"experiments", "numpy", "ptxcount", "pytest", "tests"}
