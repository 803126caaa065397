"""What no linter knows of the workflows: what they may run, where, with which rights, and that it exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelwatch import command_line
from kernelwatch.store import folders

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(path.name for path in FOLDER.iterdir())

#: GitHub's own, each pinned to one commit, which is that of the version.
ACTIONS = {
    "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1": "v7.0.1",
    "actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a": "v7.0.1",
    "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c": "v8.0.1",
    "actions/upload-pages-artifact@fc324d3547104276b827a68afc52ff2a11cc49c9": "v5.0.0",
    "actions/deploy-pages@cd2ce8fcbc39b97be8ca5fce6e763baed58fa128": "v5.0.0",
}

#: The only jobs on machines of one's own: what they are asked by, and their runner's label.
OWN = {
    ("gpu.yml", "timed"): ("pull_request_target", "coalescing-watch-review"),
    ("history.yml", "timed"): ("schedule", "coalescing-watch-history"),
}

#: (workflow, job) -> what the job may write.
WRITES = {
    ("comment.yml", "comment"): {"pull-requests"},
    ("review-comment.yml", "comment"): {"pull-requests"},
    ("gpu.yml", "button"): {"pull-requests"},
    ("gpu.yml", "comment"): {"pull-requests"},
    ("history.yml", "keep"): {"contents"},
    ("history.yml", "issue"): {"issues"},
    ("history.yml", "pages"): {"pages", "id-token"},
    ("pages.yml", "deploy"): {"pages", "id-token"},
    ("release.yml", "publish"): {"id-token"},
}

#: One command, of what the repository holds or every runner has, with values from variables and an output at most.
COMMAND = re.compile(
    r"(?P<what>make|\.ci/run|[a-z_/]+\.sh|git checkout|gh auth setup-git|gh api|pipx run uv==[\d.]+|"
    r"PYTHONPATH=kernelwatch/src python3 -m kernelwatch|\.venv/bin/kernelwatch)"
    r"(?P<words>(?: [\w./^*-]+|(?: [A-Z]+=)?(?: ?\"[\w $./-]*\"))*)"
    r"(?: >>? \"\$[A-Z_]+(?:/[\w.]+)?\")?"
)


def load(name: str) -> Any:
    """A workflow; YAML takes its key `on` for a truth value."""
    document = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    document["on"] = document.pop(True)
    return document


def jobs(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The jobs of a workflow."""
    yield from load(name)["jobs"].items()


def steps(name: str) -> Iterator[dict[str, Any]]:
    """The steps of all jobs of a workflow."""
    for _, job in jobs(name):
        yield from job.get("steps", ())


@pytest.mark.parametrize("name", WORKFLOWS)
def test_rights(name: str) -> None:
    """None by default, no caches, and each job has what the table says; every job ends some time."""
    workflow = load(name)
    assert workflow["permissions"] == {}
    assert workflow["cache-mode"] == "none"
    for job_name, job in jobs(name):
        rights = job["permissions"]
        assert {right for right, level in rights.items() if level != "read"} == WRITES.get((name, job_name), set())
        assert "uses" in job or 0 < job["timeout-minutes"] < 360
    assert "secrets." not in (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions(name: str) -> None:
    """Pinned, with the version beside the hash; a checkout leaves no token behind, and follows main or the event."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    pinned = re.findall(r"uses: (actions/\S+)(?: # (\S+))?$", text, re.MULTILINE)
    assert set(pinned) <= set(ACTIONS.items())
    assert len(pinned) == sum("uses" in step for step in steps(name))
    for step in steps(name):
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False
            assert "allow-unsafe-pr-checkout" not in step["with"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_logic(name: str) -> None:
    """Each step runs one command, without expressions, and what it calls exists."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for step in steps(name):
        if "run" not in step:
            continue
        command = COMMAND.fullmatch(step["run"])
        assert command, step["run"]
        first = command["words"].split()[0] if command["words"] else ""
        if command["what"].endswith(("-m kernelwatch", "/kernelwatch")):
            assert first in command_line.COMMANDS
        elif command["what"] == "make":
            assert first in targets
        else:
            assert "/" not in command["what"] or (ROOT / command["what"]).stat().st_mode & 0o111


@pytest.mark.parametrize("name", WORKFLOWS)
def test_own_machines(name: str) -> None:
    """A machine of one's own takes jobs of main's workflows, one at a time, from a checkout of main."""
    for job_name, job in jobs(name):
        expected = OWN.get((name, job_name))
        assert ("self-hosted" in job.get("runs-on", "")) is (expected is not None)
        if expected is None:
            continue
        trigger, label = expected
        assert trigger in load(name)["on"]
        assert job["runs-on"] == ["self-hosted", label]
        assert job["permissions"] == {"contents": "read"}
        assert job["concurrency"] == {"group": "gpu", "cancel-in-progress": False}
        assert [step["with"]["ref"] for step in job["steps"] if "checkout" in step.get("uses", "")] == ["main"]


def test_what_a_job_takes_over_is_named_by_its_number() -> None:
    """Every artifact of the night is fetched by the number that its own job was given, and none is overwritten."""
    by_name = dict(jobs("history.yml"))
    used = [step for job in by_name.values() for step in job.get("steps", ()) if "artifact" in step.get("uses", "")]
    fetched = [step["with"]["artifact-ids"] for step in used if "download-artifact" in step["uses"]]
    sources = [re.fullmatch(r"\$\{\{ needs\.(\w+)\.outputs\.artifact \}\}", number) for number in fetched]
    assert {found[1] for found in sources if found} == {"counted", "timed"}
    for name in ("counted", "timed"):
        assert by_name[name]["outputs"] == {"artifact": "${{ steps.upload.outputs.artifact-id }}"}
    assert not any("overwrite" in step.get("with", {}) for step in used)


def test_the_issue_is_written_only_where_it_is_asked_for() -> None:
    """By one command of one job, which alone has the token."""
    by_name = dict(jobs("history.yml"))
    (writing,) = (step for step in by_name["issue"]["steps"] if "GH_TOKEN" in step.get("env", {}))
    assert writing["if"] == "vars.REGRESSION_ISSUE == 'write'"
    assert writing["run"] == '.venv/bin/kernelwatch issue "$RUNNER_TEMP/issue.md" --write'
    ran = [step["run"] for job in by_name.values() for step in job.get("steps", ()) if "run" in step]
    assert [command for command in ran if "kernelwatch issue" in command] == [writing["run"]]
    assert load("history.yml")["concurrency"] == {"group": "history", "cancel-in-progress": False}


def test_label() -> None:
    """Nothing but the label starts the times of a pull request; a push does not."""
    assert load("gpu.yml")["on"] == {"pull_request_target": {"types": ["labeled"], "branches": ["main"]}}
    by_name = dict(jobs("gpu.yml"))
    assert by_name["button"]["if"].startswith("github.event.label.name == 'measure-on-gpu' && ")
    assert (by_name["timed"]["needs"], by_name["timed"]["environment"]) == ("protected", "gpu")
    assert by_name["comment"]["needs"] == "timed"


def test_no_job_enters_an_environment_that_may_be_unprotected() -> None:
    """The job before it asks GitHub, with a token that reads, on a machine that GitHub throws away."""
    entered = {
        (name, job_name): job["environment"]
        for name in WORKFLOWS
        for job_name, job in jobs(name)
        if "environment" in job and "self-hosted" in job["runs-on"]
    }
    assert entered == {("gpu.yml", "timed"): "gpu"}
    before = dict(jobs("gpu.yml"))["protected"]
    assert before["permissions"] == {"actions": "read", "contents": "read"}
    assert before["steps"][-1]["run"] == "PYTHONPATH=kernelwatch/src python3 -m kernelwatch environment gpu"
    assert not {"environment", "if", "continue-on-error"} & (set(before) | set(before["steps"][-1]))
    assert "if" not in dict(jobs("gpu.yml"))["timed"]


def test_a_pull_requests_code_shares_no_process() -> None:
    """Of the commits that are measured on a GPU, neither can reach the other's times; `make` would let them."""
    (measuring,) = (step for step in steps("gpu.yml") if step.get("run") == "make measure")
    assert measuring["env"]["IN_TURNS"] == ""
    assert "\nIN_TURNS ?= $(BASE) $(HEAD)\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_only_two_workflows_run_with_mains_rights_for_others() -> None:
    """Whoever opens a pull request sets off main's own workflow in these alone."""
    privileged = {"pull_request_target", "workflow_run", "issue_comment", "issues", "pull_request_review"}
    assert {name for name in WORKFLOWS if privileged & set(load(name)["on"])} == {"gpu.yml", "review-comment.yml"}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_is_measured_is_uploaded(name: str) -> None:
    """A run writes to a folder beside `results/`, unless it is told to write there."""
    for job_name, job in jobs(name):
        uploads = [step["with"]["path"] for step in job.get("steps", ()) if "upload-artifact" in step.get("uses", "")]
        expected = "results" if "results" in uploads else None
        assert job.get("env", {}).get(folders.RESULTS) == expected, job_name
