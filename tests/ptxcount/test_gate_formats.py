"""What `check` says as SARIF, JUnit and JSON, and `compare` as a comment; the fixture of pytest; the release."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ptxcount.command_line import main
from tests.ptxcount.test_gate import KERNEL, LAUNCH, Repository, repository

__all__ = ["repository"]
SCHEMA = json.loads((files("ptxcount.gate") / "check.schema.json").read_text(encoding="utf-8"))
FORMATS = ("sarif", "json", "junit", "github")


def _outputs(repository: Repository) -> dict[str, str]:
    found = {}
    for form in FORMATS:
        repository.run("check", "--advise", "--format", form, "--output", str(repository.folder / form))
        found[form] = (repository.folder / form).read_text(encoding="utf-8")
    return found


def test_places(repository: Repository) -> None:
    """SARIF and JUnit say what failed, and where; of the annotations see `test_action`."""
    repository.kernel(8)
    outputs = _outputs(repository)
    (run,) = json.loads(outputs["sarif"])["runs"]
    places = [each["locations"][0]["physicalLocation"]["region"]["startLine"] for each in run["results"]]
    assert ([each["ruleId"] for each in run["results"]], places) == (["PC003", "PC101"], [6, 6])
    assert run["results"][0]["message"]["text"].endswith("; scale<float>")


def test_junit(repository: Repository) -> None:
    """A case a launch, whatever is said of it, and one for a file of which more is said."""
    repository.kernel(8, lambda text: text.replace("STRIDE];", "STRIDE];\n// ptxcount: sectors <= 4"))
    repository.launch(LAUNCH + LAUNCH.replace("= 4", "= 2").replace("[[launch]]", '[[launch]]\nname = "half"'))
    suite = ElementTree.fromstring(_outputs(repository)["junit"])
    assert (suite.get("tests"), suite.get("failures")) == ("3", "3")
    cases = {case.get("name"): case.findtext("failure") for case in suite}
    assert [*cases] == ["scale<float>", "half", "scale.cu"]
    assert all(code in (cases[name] or "") for name, code in zip(cases, ("PC003", "PC005", "PC007"), strict=True))


def test_addresses(repository: Repository) -> None:
    """SARIF's are encoded."""
    (repository.folder / "a b#%.cu").write_text("#define STRIDE 8\n" + KERNEL)
    repository.launch(LAUNCH.replace("scale.cu", "a b#%.cu"))
    (run,) = json.loads(_outputs(repository)["sarif"])["runs"]
    places = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]}
    assert places == {"a%20b%23%25.cu", "ptxcount.lock"}


def test_one_line_for_github(repository: Repository) -> None:
    """What nvcc says over many lines is one annotation."""
    repository.kernel(2, lambda text: text.replace("int i =", "i ="))
    code, (said,) = repository.run("check", "--format", "github")
    assert code == 2
    assert said.count("%0A") > 2


@pytest.mark.parametrize("stride", [1, 8])
def test_schemas(stride: int, repository: Repository) -> None:
    """SARIF fits classes that are generated from the schema of 2.1.0; JSON its own schema."""
    repository.kernel(stride)
    outputs = _outputs(repository)
    log = pytest.importorskip("pydantic_sarif.model").StaticAnalysisResultsFormatSarifVersion210JsonSchema
    log.model_validate_json(outputs["sarif"])
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(outputs["json"]), SCHEMA)


def test_compare(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A table by launch and line, whose lines may have moved; with links."""
    base, head = (repository.folder / name for name in ("base.json", "head.json"))
    repository.run("check", "--format", "json", "--output", str(base))
    assert main(["compare", str(base), str(base)]) == 0
    assert "Memory transactions: same" in capsys.readouterr().out
    repository.kernel(8, lambda text: f"// moved\n{text}")
    repository.run("check", "--format", "json", "--output", str(head))
    assert main(["compare", str(base), str(head), "--link", "https://example.org/blob/1234"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("<!-- coalescing-watch: ptxcount -->\n### Memory transactions: 1 rose, 0 fell\n")
    assert "scale.cu&#58;7](https://example.org/blob/1234/scale.cu#L7) | <code>if " in said
    assert said.rstrip().endswith("| global load sectors | 256 | **1024** | +300% |")
    assert main(["compare", str(head), str(base)]) == 0
    assert "### Memory transactions: 0 rose, 1 fell\n" in capsys.readouterr().out
    base.write_text("{}")
    assert main(["compare", str(base), str(head)]) == 2
    assert capsys.readouterr().err.startswith(f"LaunchError: {base}: no 'version'; a file that ptxcount check --format")


def test_fixture(repository: Repository) -> None:
    """``def test_blur(ptxcount)`` in a repository of its own."""
    (repository.folder / "test_scale.py").write_text(
        """import pytest
from ptxcount import LaunchError

def test_scale(ptxcount):
    words = ["out=float32[1024]", "in=float32[8192]", "n=int32:1024"]
    found = ptxcount("scale.cu", "scale<float>", 4, 256, words, flags="-DMORE", time_limit=60)
    assert found.loads.sectors_per_request == 8

def test_type(ptxcount):
    with pytest.raises(LaunchError, match="float32 is needed"):
        ptxcount("scale.cu", "scale<float>", 4, 256, ["out=float64[1024]", "in=float32[8192]", "n=int32:1024"])
"""
    )
    plugin = ["-p", "no:ptxcount", "-p", "ptxcount.pytest_plugin", "-p", "no:cacheprovider"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", ".", *plugin]
    done = subprocess.run(command, cwd=repository.folder, capture_output=True, text=True, env=clean)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_release(tmp_path: Path) -> None:
    """Wheel and source archive hold the package with its schema and the plugin."""
    pytest.importorskip("build")
    pytest.importorskip("setuptools")
    root = Path(__file__).parents[2] / "ptxcount"
    copied = shutil.copytree(root, tmp_path / "copied", ignore=shutil.ignore_patterns("*.egg-info", "build"))
    command = [sys.executable, "-m", "build", "--no-isolation", str(copied), "--outdir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (archive,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(wheel, tmp_path / "wheel", "zip")
    shutil.unpack_archive(archive, tmp_path / "archive")
    assert (tmp_path / "wheel" / "ptxcount" / "gate" / "check.schema.json").is_file()
    (points,) = (tmp_path / "wheel").glob("*.dist-info/entry_points.txt")
    assert "ptxcount = ptxcount.pytest_plugin" in points.read_text()
    assert [*(tmp_path / "archive").glob("*/src/ptxcount/pytest_plugin.py")]
