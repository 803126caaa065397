"""Generated results: whatever is accepted is published and compared, under 2 GB of memory and within 60 s."""

from __future__ import annotations

import copy
import json
import math
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kernelwatch.project import ROOT
from kernelwatch.store import git, rows, samples
from kernelwatch.store.accept.command import accept, dates
from kernelwatch.store.accept.refusal import RefusedError
from tests.commits import begin, commit
from tests.incoming import RUN

#: So many results, of a commit each; and what publishing and comparing all that was accepted may take.
RESULTS, BYTES, SECONDS = 50, 2 << 30, 60

MACHINE, ENVIRONMENT = "gpu", "python3.11"
#: What an H200 stored of a commit.
STORED = samples.read(ROOT / "results" / "nvidia-h200" / "a0cc781a-virtualenv-py3.json")
#: Some of this suite's benchmarks, one of each kind.
BENCHMARKS = (
    "time_copy.DeviceCopy.time_back_to_back",
    "track_control.IsolatedTranspose.track_copy_ratio",
    "track_compiled.Compiled.track_registers",
    "track_compiled.Compiled.track_shared_bytes",
    "track_counted.LectureTranspose.track_bank_conflicts",
)

#: Put in place of anything.
HOSTILE: list[Any] = [
    *(1e308, -1e308, 5e-324, 0, 0.0, -1, 1e15, 10**400, math.nan, math.inf, -math.inf, None, True, [], {}, [[]]),
    *({"a": 1}, "", "NaN", "x" * 3000, "<img src=x>", "\ud800", "\u202e", "g\u0440u", "\x1b[2J", "a\nb", "../../x"),
    "\0",
]
#: Put in place of a number.
NUMBERS = [1e308, 99_999.0, 1e-300, 1e14, 9_999.0, 1e-9, 1.0, 123_456_789.0, 0.25]

#: Reviews of neighbours.
COMPARE = """
import sys
from pathlib import Path
from kernelwatch.review.commands import compare as main
codes = [main([base, head, "--machine", "gpu"], Path()) for base, head in zip(sys.argv[1:], sys.argv[2:])]
sys.exit(max(codes) if set(codes) <= {0, 1} else 2)
"""


def _row(name: str, chance: random.Random) -> list[Any]:
    """Two configurations of a benchmark, as a run stores them, with all of its fractions so much larger."""

    def scaled(value: Any) -> Any:
        if isinstance(value, list):
            return [scaled(each) for each in value]
        return value * factor if isinstance(value, float) else value

    row, factor = rows.read(STORED, name), chance.choice((1.0, 1.01, 2.0))
    found = rows.on(row, [axis[: 2 if place == 0 else 1] for place, axis in enumerate(row["params"])])
    return [scaled(each) for each in rows.written(found)]


def _document(commit: str, date: int, chance: random.Random) -> dict[str, Any]:
    params = {"machine": MACHINE, "python": "3"}
    facts = {"commit_hash": commit, "env_name": ENVIRONMENT, "date": date, "params": params}
    return copy.deepcopy({**STORED, **facts, "results": {name: _row(name, chance) for name in BENCHMARKS}})


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a document and each of its keys."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


def _mutate(document: Any, chance: random.Random) -> None:
    """Change something of it: its first values, a number for another one, anything for anything, or what is there."""
    places = _places(document)
    numbers = [place for place in places if isinstance(place[0][place[1]], float)]
    what = chance.random()
    container, key = chance.choice(numbers if 0.3 <= what < 0.6 and numbers else places)
    if what < 0.3 and isinstance(document.get("results"), dict):
        # asv's search for steps fills the memory where several commits hold it, not one.
        known = {name: row for name, row in document["results"].items() if isinstance(row, list)}
        document["results"] = {name: [[1e308, 1e308], *row[1:]] for name, row in known.items()}
    elif what < 0.85:
        container[key] = chance.choice(NUMBERS if what < 0.6 and numbers else HOSTILE)
    elif what < 0.95:
        del container[key]
    elif isinstance(container, dict):
        container[str(chance.choice(HOSTILE))] = copy.deepcopy(container[key])
    else:
        container.insert(key, copy.deepcopy(container[key]))


def _run(folder: Path, *words: str, until: float) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "ptxcount" / "src"), str(ROOT / "kernelwatch" / "src")])
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env={**os.environ, "PYTHONPATH": path}, text=True, capture_output=True,
        timeout=until - time.monotonic(), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES)),
    )  # fmt: skip


def test_generated(tmp_path: Path) -> None:
    """No traceback, nothing left out that was accepted."""
    chance = random.Random(18)
    begin(tmp_path)
    for _ in range(RESULTS):
        commit(tmp_path)
    written = dates(["HEAD"], tmp_path, ancestors=True)
    whole = json.loads((ROOT / "results" / "benchmarks.json").read_text())
    described = {name: whole[name] for name in (*BENCHMARKS, "version")}
    kept, stored, incoming = (tmp_path / name / MACHINE for name in ("results", "stored", "incoming"))
    for folder in (kept, stored, incoming):
        folder.mkdir(parents=True)
        (folder.parent / "benchmarks.json").write_text(json.dumps(described))
        (folder / "machine.json").write_text(json.dumps({"machine": MACHINE, "version": 1}))
    accepted: list[str] = []
    for each in git.text(tmp_path, "rev-list", "--reverse", "HEAD").split():
        path = incoming / f"{each[:8]}-{ENVIRONMENT}.json"
        document, run = _document(each, written[each], chance), copy.deepcopy(RUN) | {"commits": [each]}
        for _ in range(chance.choice((1, 1, 2, 3))):
            _mutate(run if chance.random() < 0.2 else document, chance)
        path.write_text(json.dumps(document), encoding="utf-8")
        (incoming / "runs.jsonl").write_text(f"{json.dumps(run)}\n", encoding="utf-8")
        try:
            accept(incoming.parent, stored.parent, MACHINE, {each: written[each]})
        except RefusedError:
            assert sorted(file.name for file in stored.iterdir()) == ["machine.json"]
        else:
            accepted.append(each)
            (stored / path.name).replace(kept / path.name)
            if (stored / "runs.jsonl").exists():
                with (kept / "runs.jsonl").open("a") as file:
                    file.write((stored / "runs.jsonl").read_text())
                (stored / "runs.jsonl").unlink()
        path.unlink()
    assert RESULTS / 10 < len(accepted) < RESULTS * 0.9
    config = {"version": 1, "project": "p", "repo": ".", "branches": ["main"], "results_dir": "results"}
    config |= {"html_dir": "html", "plugins": [".kernelwatch.show.site.publisher"]}
    (tmp_path / "asv.conf.json").write_text(json.dumps(config))
    ends = time.monotonic() + SECONDS
    published = _run(tmp_path, "-m", "asv", "publish", until=ends)
    said = published.stdout + published.stderr
    assert published.returncode == 0, said[-2000:]
    assert "Traceback" not in said
    assert "left out" not in said
    compared = _run(tmp_path, "-c", COMPARE, *accepted[:5], until=ends)
    assert compared.returncode in (0, 1), compared.stdout[-500:] + compared.stderr[-2000:]
