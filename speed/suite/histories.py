"""Projects with long histories of stored results, made from this repository's own results.

`python -m speed.suite.histories FOLDER 300` makes a project with 300 commits. Each commit changes one file. Each
machine has results for each commit: 800 numbers, a third of them times, and the run records. Times scatter by 0.3 %;
machine code never changes.
"""

import argparse
import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

#: Path of the stored results that are copied, without the endings of the files.
PATTERN = ROOT / "results" / "nvidia-h200" / "63ca89bd-virtualenv-py3-20261129T012047Z"
MACHINES = "gpu-a", "gpu-b", "gpu-c"
NUMBERS = 800

#: Prefixes of the benchmarks whose results are copied, in this order, up to NUMBERS numbers.
_PREFIXES = "time_copy.", "track_control.OffsetCopy", "track_control.StrideCopy.", "track_counted.StrideCopy"

#: Number of different sets of times. Neighbouring commits have different sets.
_VARIANTS = 16

_NOISE = 0.003


def make_history(folder: Path, commits: int) -> list[str]:
    """Make a project with measured commits in a new folder; return the hashes of the commits, oldest first."""
    for name in ("benchmarks", "gpu_kernels"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("asv.conf.json", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    hashes = _make_commits(folder, commits)
    document, records = _select_pattern()
    results = folder / "results"
    for machine in MACHINES:
        (results / machine).mkdir(parents=True)
        facts = json.loads(PATTERN.with_name("machine.json").read_text(encoding="utf-8"))
        (results / machine / "machine.json").write_text(json.dumps({**facts, "machine": machine}), encoding="utf-8")
        texts = [json.dumps(variant) for variant in _iter_variants(document, random.Random(machine))]
        for place, commit in enumerate(hashes):
            text = texts[place % _VARIANTS].replace(document["commit_hash"], commit)
            text = text.replace(f'"date": {document["date"]}', f'"date": {_find_date(place) * 1000}')
            stem = f"{commit[:8]}-virtualenv-py3-20260101T000000Z"
            (results / machine / f"{stem}.json").write_text(text, encoding="utf-8")
            for ending, record in records.items():
                line = record.replace(document["commit_hash"], commit)
                (results / machine / f"{stem}.{ending}").write_text(line, encoding="utf-8")
    shutil.copy(ROOT / "results" / "benchmarks.json", results)
    return hashes


def _find_date(place: int) -> int:
    return 1_767_225_600 + 3600 * place


def _make_commits(folder: Path, commits: int) -> list[str]:
    """Commit the project, then one change per hour; return the hashes of these commits, oldest first."""
    git = ["git", "-c", "user.name=Speed", "-c", "user.email=speed@localhost"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    lines = [
        f"commit refs/heads/main\ncommitter Speed <speed@localhost> {_find_date(place)} +0000\ndata 4\nStep\n"
        + ("from refs/heads/main^0\n" if place == 0 else "")
        + f"M 644 inline step\ndata {len(str(place))}\n{place}\n"
        for place in range(commits)
    ]
    subprocess.run([*git, "fast-import", "--quiet"], cwd=folder, input="".join(lines), text=True, check=True)
    subprocess.run([*git, "reset", "-q", "--hard"], cwd=folder, check=True)
    listing = [*git, "rev-list", "--reverse", f"--max-count={commits}", "main"]
    return subprocess.run(listing, cwd=folder, capture_output=True, text=True, check=True).stdout.split()


def _select_pattern() -> tuple[dict[str, Any], dict[str, str]]:
    """Return asv's result document, cut to NUMBERS numbers, and the records of its benchmarks by file ending."""
    document = json.loads(PATTERN.with_suffix(".json").read_text(encoding="utf-8"))
    selected: dict[str, Any] = {}
    count = 0
    for name in (name for prefix in _PREFIXES for name in document["results"] if name.startswith(prefix)):
        if (count := count + len(document["results"][name][0])) > NUMBERS:
            break
        selected[name] = document["results"][name]
    groups = {name.rpartition(".")[0] for name in selected}
    (run,) = _read_lines("runs.jsonl")
    for table in ("began", "processes"):
        run[table] = {commit: _keep(names, selected) for commit, names in run[table].items()}
    run["skipped"] = [skip for skip in run["skipped"] if skip["benchmark"] in selected]
    (fingerprints,) = _read_lines("fingerprints.jsonl")
    fingerprints["fingerprints"] = _keep(fingerprints["fingerprints"], groups)
    cubins = next(line for line in _read_lines("cubins.jsonl") if line["arch"] == run["arch"])
    records = {"runs.jsonl": run, "fingerprints.jsonl": fingerprints, "cubins.jsonl": cubins}
    durations = _keep(document["durations"], selected)
    return (
        {**document, "results": selected, "durations": durations},
        {ending: json.dumps(record) + "\n" for ending, record in records.items()},
    )


def _read_lines(ending: str) -> list[dict[str, Any]]:
    return list(map(json.loads, PATTERN.with_suffix(f".{ending}").read_text(encoding="utf-8").splitlines()))


def _keep(table: dict[str, Any], names: Any) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name in names}


def _iter_variants(document: dict[str, Any], rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield copies of the document with other times: noise scales all samples of a configuration by one factor."""
    samples = document["result_columns"].index("samples")
    for _ in range(_VARIANTS):
        results = {}
        for name, stored_row in document["results"].items():
            row = stored_row
            if name.startswith("time_"):
                factors = [1 + rng.gauss(0, _NOISE) for _ in row[0]]
                pairs = zip(row[samples], factors, strict=True)
                scaled = [sides and [float(f"{side * factor:.8g}") for side in sides] for sides, factor in pairs]
                result = [value * factor for value, factor in zip(row[0], factors, strict=True)]
                row = [result, *row[1:samples], scaled, *row[samples + 1 :]]
            results[name] = row
        yield {**document, "results": results}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument("commits", type=int)
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    print(make_history(options.folder, options.commits)[-1])
