"""Fingerprints change with each fact that a number depends on, and with no other."""

import importlib
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from gpu_kernels import catalog
from kernelwatch.config import settings
from kernelwatch.counting import launch_counts
from kernelwatch.instrument import build_job, fingerprint
from kernelwatch.instrument.job_messages import Job
from kernelwatch.kernel.arguments import ArrayArgument
from kernelwatch.suite import registry
from tests import served

#: Field of a job -> another value, which must change the fingerprint. `TEXTS` has the values that must not.
CHANGES: dict[str, Any] = {
    "cubin": b"\x7fELG",
    "entry": "other",
    "grid": (2, 1, 1),
    "block": (64, 1, 1),
    "dynamic_shared": 1024,
    "arrays": (served.array(), served.array("input 0", "in", values="exact")),
    "parameters": bytes(24),
    "addresses": (0, 16),
    "variables": (("weights", b"1234"),),
    "useful_bytes": 10001,
    "is_verified": False,
    "oracle": served.job(entry="other"),
    "in_l2": True,
    "isolated": True,
    "l2_fetch_bytes": 32,
    "samples": 3,
    "most": 30,
}
TEXTS = {"name": "another kernel", "package_digest": "decade", "reference": "ones"}


@pytest.mark.parametrize("field", Job.__struct_fields__)
def test_listed_fields_change_the_fingerprint(field: str) -> None:
    changed = served.job(**{field: (CHANGES | TEXTS)[field]})
    assert (fingerprint.hash_job(changed, "c") != fingerprint.hash_job(served.job(), "c")) == (field in CHANGES)


def test_stored_fingerprints_stay_valid() -> None:
    """Another hash would end the reuse of all stored numbers. The order of facts does not matter."""
    for facts in ({"a": 1, "b": b"x"}, {"b": b"x", "a": 1}):
        assert fingerprint.hash_facts(facts, [2]) == "f34f3043e6027493"
    assert fingerprint.hash_job(served.job(), "c") == "b5accd88cf0190d2"
    assert fingerprint.hash_job(served.job(oracle=served.job(samples=1), isolated=True), "c") == "4b13cd2854887857"
    bound = catalog.KERNELS["histogram"].bind_arguments("float16", size=9, bins=4)
    bound += catalog.KERNELS["matmul_tiled"].bind_arguments("float16", rows=2, inner=3, columns=4)
    arrays = [argument for argument in bound if isinstance(argument, ArrayArgument)]
    assert fingerprint.hash_facts([build_job._device_array(array) for array in arrays]) == "05e7ab7bb0667d9f"


#: Facts of a GPU. The last two change from moment to moment and are not in the fingerprint.
GPU = {
    "uuid": "GPU-1",
    "driver": "580.159.04",
    "cuda": 13000,
    "max_sm_clock_mhz": 1980,
    "max_memory_clock_mhz": 3201,
    "memory_bus_bits": 6016,
    "power_limit_mw": 700000,
    "ecc": True,
    "application_sm_clock_mhz": 1980,
    "application_memory_clock_mhz": 3201,
    "temperature_c": 60,
    "sm_clock_mhz": 345,
}


def test_lasting_gpu_facts_change_the_fingerprint() -> None:
    """Without a UUID, the fingerprint is empty, so that no stored time matches."""
    conditions = fingerprint.hash_conditions(GPU)
    assert fingerprint.hash_conditions({**GPU, "l2_fetch_bytes": 64}) == conditions, (
        "64 bytes are the default of results without this fact"
    )
    assert fingerprint.hash_conditions({**GPU, "l2_fetch_bytes": 32}) != conditions
    changed = [fact for fact in GPU if fingerprint.hash_conditions({**GPU, fact: 1}) != conditions]
    assert changed == list(GPU)[:-2]
    assert fingerprint.hash_conditions({**GPU, "uuid": None}) == fingerprint.hash_conditions({}) == ""


def test_new_version_changes_fingerprints(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = registry.current_suite().counted[0].launch(next(iter(registry.current_suite().counted[0].points())))
    fingerprints = fingerprint.hash_conditions(GPU), launch_counts.hash_launches([launch])
    monkeypatch.setattr(fingerprint, "VERSION", "another")
    assert fingerprint.hash_conditions(GPU) != fingerprints[0]
    assert launch_counts.hash_launches([launch]).keys() == fingerprints[1].keys() == {str(launch)}
    assert launch_counts.hash_launches([launch]) != fingerprints[1]


#: A package whose module `rows` uses every form of import. No module imports `apart`.
PACKAGE = {
    "__init__.py": "",
    "rows.py": """
import functools
from . import units
from .helpers import doubled
def reference(output, x):
    from .lazily import late
    return doubled(x) * units.UNIT + late(x)
def _made(by):
    return lambda output, x: x * by
made = _made(2)
partial = functools.partial(reference, 0)
""",
    "helpers.py": "import {name}.whole\ndef doubled(x):\n    return 2 * x\n",
    "units.py": "from .deeper import UNIT\n",
    "deeper.py": "UNIT = 1\n",
    "lazily.py": "def late(x):\n    return 0\n",
    "whole.py": "",
    "apart.py": "",
}
EVERY = {"reference", "made", "partial"}


@pytest.mark.parametrize("file", PACKAGE)
def test_fingerprint_covers_imported_modules(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fingerprint of `reference` covers its module and imports, those of the others the whole package."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"made_{file.partition('.')[0]}"
    # The package has one name in both versions, so that only the changed file differs.
    prints = []
    for suffix in ("", "# another\n"):
        for module in [module_name for module_name in sys.modules if module_name.partition(".")[0] == name]:
            del sys.modules[module]
        fingerprint._module_file.cache_clear()
        fingerprint.list_imports.cache_clear()
        (tmp_path / name).mkdir(exist_ok=True)
        for package_file, text in PACKAGE.items():
            (tmp_path / name / package_file).write_text(text.replace("{name}", name) + suffix * (package_file == file))
        rows = importlib.import_module(f"{name}.rows")
        monkeypatch.setattr(registry, "find_measured_folder", lambda: tmp_path / name)
        prints.append({function: fingerprint.hash_function(getattr(rows, function)) for function in EVERY})
    changed = {function for function in EVERY if prints[0][function] != prints[1][function]}
    assert changed == (EVERY - {"reference"} if file == "apart.py" else EVERY)


@pytest.mark.parametrize("module", ["", "sys", "json.decoder.no", "no.module", "without_spec"])
def test_function_without_source_has_unknown_imports(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None means unknown: no Python file of the function's module is found, so its imports cannot be read."""
    monkeypatch.setitem(sys.modules, "without_spec", ModuleType("without_spec"))
    assert fingerprint.find_sources(FunctionType((lambda: 0).__code__, {"__name__": module})) is None


def test_modules_of_one_name_are_all_covered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names lose their package, so that a renamed package gives the same hash. The second `same` keeps its package."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(settings, "package_name", lambda: "made_package")
    texts = {"made_package": "FACTOR = 2\n", "made_suite": "from made_package.same import FACTOR\ndef double(x): ...\n"}
    for folder, text in texts.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(text)
    sources = fingerprint.find_sources(importlib.import_module("made_suite.same").double)
    assert sources == {"same": tmp_path / "made_suite/same.py", "made_package.same": tmp_path / "made_package/same.py"}


PTX = """//
// Compiler Build ID: CL-1
.version 9.0
.target sm_90

.visible .entry one(
	.param .u64 one_param_0
)
{
	.loc	1 23 0
	mov.u32 	%r1, %ctaid.x;
	ret;
}

.visible .entry two(
	.param .u64 two_param_0
)
{
	.loc	1 30 0
	mov.u32 	%r1, %tid.x;
	ret;
}
	.file	1 "/tmp/kernel.cu"
	.section	.debug_str
	{
.b8 95
	}
"""


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("CL-1", "CL-2", True),
        ("1 23 0", "1 24 0", True),
        (".b8 95", ".b8 96", True),
        ("%tid.x", "%tid.y", True),
        ("%ctaid.x", "%ctaid.y", False),
        ("sm_90", "sm_100", False),
        ("u64 one_param_0", "u32 one_param_0", False),
        ("u64 two_param_0", "u32 two_param_0", True),
        ("one(\n\t.param .u64 one_param_0\n)", "one", False),
        (".visible .entry two", ".func less()\n{\n\tret;\n}\n.entry two", False),
    ],
)
@pytest.mark.parametrize("head", [".visible .entry one(", ".entry one(", ".weak .entry one ("])
def test_ptx_fingerprint_covers_its_kernel(head: str, old: str, new: str, is_same: bool) -> None:
    """The module's declarations are covered, too, but not lines and other kernels."""
    text = PTX.replace(".visible .entry one(", head)
    changed = PTX.replace(old, new).replace(".visible .entry one(", head)
    assert (fingerprint.hash_ptx(changed, "one") == fingerprint.hash_ptx(text, "one")) == is_same
    assert fingerprint.hash_ptx(changed, "one") != fingerprint.hash_ptx(changed, "two")


@pytest.mark.parametrize(
    ("file", "counts"),
    [("a.py", True), ("kernels/k.cu", True), ("kernels/k.cuh", True), ("k.h", True), ("kernels/README.md", False)],
)
def test_package_digest_covers_code(file: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels").mkdir()
    monkeypatch.setattr(registry, "find_measured_folder", lambda: tmp_path)
    digests = set()
    for text in ("one", "other"):
        (tmp_path / file).write_text(text)
        digests.add(build_job.package_digest.__wrapped__())
    assert len(digests) == 1 + counts
