"""Workflows of GitHub: permissions, pinned actions, triggers, and commands that exist."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelwatch.cli import main

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = ("gpu.yml", "history.yml", "release.yml", "review.yml", "tests.yml")

#: GitHub's actions, each pinned to the commit of its version.
ACTIONS = {
    "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1": "v7.0.1",
    "actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a": "v7.0.1",
    "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c": "v8.0.1",
    "actions/upload-pages-artifact@fc324d3547104276b827a68afc52ff2a11cc49c9": "v5.0.0",
    "actions/deploy-pages@cd2ce8fcbc39b97be8ca5fce6e763baed58fa128": "v5.0.0",
}

#: (workflow, job) -> its permissions to write.
WRITES = {
    ("history.yml", "kept"): {"contents"},
    ("history.yml", "issue"): {"issues"},
    ("history.yml", "deployed"): {"pages", "id-token"},
    ("release.yml", "publish"): {"id-token"},
}

#: Commands that run the project's code. A job with permission to write must not run it.
_OWN_CODE = re.compile(r"\bmake\b|kernelwatch (?!-)|\basv\b|pip install")


def load(name: str) -> Any:
    """Return a workflow. YAML reads its key `on` as true, so it is renamed."""
    document = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    document["on"] = document.pop(True)
    return document


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for file in WORKFLOWS:
        yield from ((file, name, job) for name, job in load(file)["jobs"].items())


def test_all_workflows_are_tested() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == list(WORKFLOWS)


def test_jobs_have_only_their_permissions() -> None:
    for file in WORKFLOWS:
        assert load(file)["permissions"] == {}
        assert "secrets." not in (FOLDER / file).read_text(encoding="utf-8")
    for file, name, job in jobs():
        writes = {right for right, level in job["permissions"].items() if level != "read"}
        assert writes == WRITES.get((file, name), set())
        assert 0 < job["timeout-minutes"] < 360
        if writes:
            assert not [step["run"] for step in job["steps"] if _OWN_CODE.search(step.get("run", ""))]


@pytest.mark.parametrize("file", WORKFLOWS)
def test_actions_are_pinned(file: str) -> None:
    text = (FOLDER / file).read_text(encoding="utf-8")
    assert set(re.findall(r"uses: (actions/\S+)(?: # (\S+))?$", text, re.MULTILINE)) <= set(ACTIONS.items())
    steps = [step for job in load(file)["jobs"].values() for step in job["steps"] if "uses" in step]
    assert all(step["uses"] in ACTIONS for step in steps)
    checkouts = [step["with"] for step in steps if step["uses"].startswith("actions/checkout")]
    assert all(checkout["persist-credentials"] is False for checkout in checkouts)


def test_pull_requests_start_no_gpu() -> None:
    starts = {file: set(load(file)["on"]) for file in WORKFLOWS}
    assert starts == {
        "gpu.yml": {"workflow_dispatch"}, "history.yml": {"schedule", "workflow_dispatch"},
        "release.yml": {"workflow_dispatch"}, "review.yml": {"pull_request"}, "tests.yml": {"push", "pull_request"},
    }  # fmt: skip
    on_gpu = [(file, job) for file, _, job in jobs() if "ubuntu" not in job["runs-on"]]
    assert [file for file, _ in on_gpu] == ["gpu.yml", "history.yml"]
    for _, job in on_gpu:
        assert job["permissions"] == {"contents": "read"}
    # Of a group, one job runs at a time.
    assert load("gpu.yml")["concurrency"]["group"] == "gpu"
    assert on_gpu[1][1]["concurrency"]["group"].endswith("|| 'gpu' }}")
    assert on_gpu[0][1]["env"]["INTERLEAVED"] == "", "code of a commit and of main would share a process"


def test_called_targets_and_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    runs = [step["run"] for _, _, job in jobs() for step in job["steps"] if "run" in step]
    called_targets = {
        word for run in runs if run.startswith("make ") for word in re.findall(r"[a-z-]+\b(?!=)", run.split('"')[0])
    }
    assert called_targets - {"make"} <= targets
    called_subcommands = {subcommand for run in runs for subcommand in re.findall(r"bin/kernelwatch (\w+)", run)}
    assert called_subcommands <= set(main.COMMANDS)
