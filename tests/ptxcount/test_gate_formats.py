"""Formats of `check` (SARIF, JSON, annotations), Markdown of `compare`, and pytest's fixture."""

import json
import os
import subprocess
import sys
from importlib.resources import files

import pytest

from ptxcount.gate.diagnostics import DIRECTIVE, NOT_PINNED, RISE
from tests.ptxcount.gate_repository import KERNEL, LAUNCH, TWO_BLOCKS, Repository

SCHEMA = json.loads((files("ptxcount.gate") / "check.schema.json").read_text(encoding="utf-8"))


def _output(repository: Repository, form: str) -> str:
    return "\n".join(repository.run("check", "--advise", "--format", form)[1])


def test_formats_have_the_same_findings(repository: Repository) -> None:
    (repository.folder / "a b#%.cu").write_text("#define STRIDE 8\n" + KERNEL)
    repository.write_kernel(8, ("STRIDE];", "STRIDE];\n// ptxcount: sectors <= 4"))
    half = TWO_BLOCKS.replace("[[launch]]", '[[launch]]\nname = "half"')
    repository.write_launches(LAUNCH + half + LAUNCH.replace("scale.cu", "a b#%.cu"))
    sarif = _output(repository, "sarif")
    (run,) = json.loads(sarif)["runs"]
    findings = []
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        file, line = place["artifactLocation"]["uri"], place["region"]["startLine"]
        findings.append((result["ruleId"], result["level"], file, line))
    assert findings == [
        (RISE, "error", "scale.cu", 6), ("PC101", "warning", "scale.cu", 6), (NOT_PINNED, "error", "scale.cu", 4),
        (NOT_PINNED, "error", "a%20b%23%25.cu", 4), ("PC101", "warning", "a%20b%23%25.cu", 6),
        (DIRECTIVE, "error", "scale.cu", 7),  # a limit on a line without accesses
    ]  # fmt: skip
    assert run["results"][0]["message"]["text"].endswith(" [launch scale<float> (launch 1)]")
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {code for code, *_ in findings}

    first, third = "scale<float> (launch 1)", "scale<float> (launch 3)"
    report = json.loads(_output(repository, "json"))
    assert [(finding["code"], finding["level"], finding["line"]) for finding in report["findings"]] == [
        (code, level, line) for code, level, _, line in findings
    ]
    assert [(launch["name"], launch["totals"]["load_sectors"]) for launch in report["launches"]] == [
        (first, 1024), ("half", 512), (third, 1024)
    ]  # fmt: skip
    kinds = [line.partition(" file=")[0] for line in _output(repository, "github").splitlines()]
    assert kinds == [f"::{level}" for _, level, *_ in findings]
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(report, SCHEMA)
    log = pytest.importorskip("pydantic_sarif.model").StaticAnalysisResultsFormatSarifVersion210JsonSchema
    log.model_validate_json(sarif)


def test_long_error_is_one_annotation(repository: Repository) -> None:
    repository.write_kernel(2, ("int i =", "i ="))
    code, (annotation,) = repository.run("check", "--format", "github")
    assert code == 2
    assert annotation.count("%0A") > 2


THIRD = '[[launch]]\nname = "`third`"' + LAUNCH.removeprefix("[[launch]]").replace("= 4", "= 3")
#: Stride, launches, and output of `compare`.
COMPARED = [
    (8, LAUNCH, ["1 line rose, 0 fell", "0 of 1 launches kept their counts.",
                 "scale<float>: scale.cu:6: global load sectors "
                 "rose from 256 to 1024 (8 to 32 per request, ideal 4) (+300 %)",
                 "    if (i < n) out[i] = 2 * in[i * STRIDE];"]),
    (1, LAUNCH, ["0 lines rose, 1 fell", "0 of 1 launches kept their counts.",
                 "scale<float>: scale.cu:6: global load sectors "
                 "fell from 256 to 128 (8 to 4 per request, ideal 4) (-50 %)",
                 "    if (i < n) out[i] = 2 * in[i * STRIDE];"]),
    (2, LAUNCH + THIRD, ["1 new", "1 of 2 launches kept their counts.", "new: `third`"]),
    (2, THIRD, ["1 new, 1 gone", "0 of 1 launches kept their counts.", "new: `third`", "gone: scale.cu: phys::scale<"]),
    # a failing launch is never equal, and a missing one may be the failed one
    (2, THIRD.replace('"scale.cu"', '"other.cu"'), [
        "1 not counted", "0 of 1 launches kept their counts.", "not counted: `third`: LaunchError: "]),
]  # fmt: skip


@pytest.mark.parametrize(("stride", "launch", "messages"), COMPARED)
def test_compare_prints_changes(stride: int, launch: str, messages: list[str], repository: Repository) -> None:
    repository.git("init", "-q")
    repository.git("add", ".")
    repository.git("commit", "-qm", "one")
    unchanged = ["### Memory transactions: same", "", "    1 of 1 launches kept their counts."]
    assert repository.run("compare", "HEAD") == (0, unchanged)
    repository.write_kernel(stride)
    repository.write_launches(launch)
    code, (title, empty, *lines) = repository.run("compare", "HEAD")
    assert (code, title, empty) == (0, f"### Memory transactions: {messages[0]}", "")
    expected = [f"    {message}" for message in messages[1:]]
    assert [line[: len(begins)] for line, begins in zip(lines, expected, strict=True)] == expected


def test_compare_names_another_compiler(repository: Repository) -> None:
    repository.edit_lock('"nvcc": "13', '"nvcc": "12')
    repository.git("init", "-q")
    repository.git("add", ".")
    repository.git("commit", "-qm", "another nvcc")
    assert repository.run("compare", "HEAD")[1][3] == "    The compiler was nvcc 12.0.88 before, and is 13.0.88 now."


def test_compare_with_unknown_revision_fails(repository: Repository) -> None:
    repository.git("init", "-q")
    assert repository.run("compare", "gone") == (2, [])


def test_pytest_fixture_counts_a_kernel(repository: Repository) -> None:
    (repository.folder / "test_scale.py").write_text(
        """import pytest
from ptxcount import LaunchError

def test_scale(ptxcount):
    words = ["out=float32[1024]", "in=float32[8192]", "n=int32:1024"]
    counters = ptxcount("scale.cu", "scale<float>", 4, 256, words, flags="-DMORE", arch=None, time_limit=60)
    assert counters.loads.sectors_per_request == 8  # of every second float
    with pytest.raises(LaunchError, match="pass float32") as info:
        ptxcount("scale.cu", "scale<float>", 4, 256, ["out=float64[1024]", "in=float32[8192]", "n=int32:1024"])
    assert len(info.traceback) == 2, "a failing test shows no line of the library"
    with pytest.raises(LaunchError, match="argument 0 is not a text"):
        ptxcount("scale.cu", "scale<float>", 4, 256, [b"out", "in=float32[8192]", "n=int32:1024"])
"""
    )
    plugin = ["-p", "no:ptxcount", "-p", "ptxcount.pytest_plugin", "-p", "no:cacheprovider"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", ".", *plugin]
    done = subprocess.run(command, cwd=repository.folder, capture_output=True, text=True, env=clean)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
