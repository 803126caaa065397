"""A made-up repository, and what was measured of it: commits that change, fail, and measure a part; hostile names."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from asv.config import Config
from asv.repo import get_repo

from kernelwatch import Kernel, inputs, outputs
from kernelwatch.config import cache_dir, settings
from kernelwatch.config.project_root import CHECKOUT
from kernelwatch.counting import source_lines
from kernelwatch.instrument import fingerprint
from kernelwatch.show.site import commits, publisher
from kernelwatch.store import git, record
from kernelwatch.suite import registry
from kernelwatch.suite.registry import Suite
from kernelwatch.suite.sweep import Sweep
from tests.commits import begin, commit
from tests.stored import Outcome, change_document, samples, write

FLAGS = "-Xptxas -O3"
TIMED = {"w": ("64", "256"), "dtype": ("float32", "float64"), "flags": (FLAGS,)}
COMPILED = {"kernel": ("blur", "sharpen"), "dtype": ("float32",), "flags": (FLAGS,), "arch": ("sm_80", "sm_90")}
SIZES, DTYPES = {"rows x columns": ("64x64", "8x8")}, {"dtype": ("float32",)}
MATRICES = {"kernel": ("flip", "turn"), **SIZES, **DTYPES, "flags": (FLAGS, "-O0")}
TIME, COPIES = "time_kernel.Blur.time_back_to_back", "track_control.Blur.track_copy_ratio"
TURNED, COPY = "time_kernel.Matrices.time_back_to_back", "time_copy.DeviceCopy.time_back_to_back"
LOADED, STORED = (f"track_counted.Blur.track_sectors_{what}" for what in ("loaded", "stored"))
RATIO, SPILLED = "track_counted.Blur.track_load_sectors", "track_compiled.Compiled.track_spill_bytes"
AXES: dict[str, Any] = {
    **dict.fromkeys((TIME, COPIES, LOADED, STORED, RATIO), TIMED),
    SPILLED: COMPILED,
    TURNED: MATRICES,
    COPY: {**SIZES, **DTYPES},
}

#: A name that would run a script wherever it were taken for markup. A folder bears it: no slash.
HOSTILE = '"><img src=x onerror="window.attacked=1">'
TITLES = {
    TIME: "Blur, DRAM", COPIES: "Blur, DRAM: copies", TURNED: "Matrices, DRAM", COPY: "Copy, DRAM", SPILLED: HOSTILE,
    LOADED: "Blur, counted: sectors loaded", STORED: "Blur, counted: sectors stored",
    RATIO: "Blur, counted: load sectors",
}  # fmt: skip

SOURCE = (
    "// A blur.\n__global__ void blur(float* out, const float* image, int w)\n{\n    out[threadIdx.x] = image[0];\n}\n"
)
ACCEPTED = '[[regression]]\nkernel = "sharpen"\nnumber = "spill bytes"\nreason = "it keeps a row"\n'
#: What a run stored of the source's lines: sectors of two accesses, and wavefronts in a header.
LISTING = (
    "      1  // A blur, of an image whose rows are so long that no line of a phone has room for them.\n"
    "        ...\n>>    4      out[threadIdx.x] = image[0];\n         ^ load: 1\n"
    ">>       ^ store: 8\n"
    "other.cuh:\n      4  tile[0] = 1;\n         ^ shared store: 2"
)
COSTS = [
    {"file": 0, "line": 4, "unit": "sectors", "amount": 3, "now": [1, 1 << 31], "best": [(1 << 8) - 1]},
    {"file": 1, "line": 4, "unit": "wavefronts", "amount": 1, "now": [3], "best": []},
]

#: On a branch of its own; measured without a GPU alone; without counts of stores; with counts of one width.
ASIDE, ALONE, LAST = "Blur aside", "Sharpen spills less", "Blur along rows"
KEEPS, BREAKS = "Sharpen keeps a row", "Blur breaks"

#: Subject -> files; seconds of `blur`, sectors it loads, bytes `sharpen` spills. NaN fails; None: not measured.
STORY: dict[str, tuple[dict[str, str], tuple[float | None, float | None, float | None]]] = {
    "Blur and sharpen": ({"imaging/blur.cu": SOURCE, "README.md": "1"}, (4e-5, 64.0, 16.0)),
    f"Blur <down> {HOSTILE}": ({"imaging/blur.cu": SOURCE.replace("[0]", "[w]")}, (8e-5, 128.0, 16.0)),
    ASIDE: ({"imaging/blur.cu": ""}, (9e-5, 256.0, 16.0)),
    "Words": ({"README.md": "2"}, (None, None, None)),
    KEEPS: ({"imaging/sharpen.cu": "//", "acknowledged.toml": ACCEPTED}, (None, 128.0, 24.0)),
    BREAKS: ({"imaging/blur.cu": SOURCE.replace("[0]", "[w * w]")}, (math.nan, 128.0, 24.0)),
    LAST: ({"imaging/blur.cu": SOURCE}, (3e-5, 64.0, 24.0)),
    ALONE: ({"imaging/sharpen.cu": "// less"}, (None, None, 20.0)),
}
#: Subject -> seconds of flip and of turn, 64x64 and 8x8, by flags; and of a copy.
TURNS = {
    "Blur and sharpen": (*[1e-4, 2e-4, 3e-5, 4e-5] * 2, 5e-5, 1e-5),
    LAST: (1e-4, 2.1e-4, 3e-5, 4e-5, 1.5e-4, 2e-4, 2.5e-5, 4e-5, 5e-5, 1e-5),
}


@contextmanager
def published(folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Publish the site of the repository; its folder, and what commits are called in texts, by their hashes."""
    root = folder / "repository"
    with pytest.MonkeyPatch.context() as patch:
        made = _suite()
        patch.setattr(registry, "current_suite", lambda: made)
        patch.setattr(settings, "package_name", lambda: "")
        patch.setenv(cache_dir.CACHE, str(folder / "cache"))
        patch.setenv(CHECKOUT, str(root))
        patch.setattr(publisher, "ROOT", root)
        commits.measured.cache_clear()
        names = _made(root)
        config = Config.load(str(root / "asv.conf.json"))
        config.repo, config.results_dir, config.html_dir = str(root), str(root / "results"), str(folder / "html")
        yield publisher.write(config, get_repo(config)), names
    commits.measured.cache_clear()


def _suite() -> Suite:
    """Kernels, of which one has no reference, in a project that names no package."""
    one: Any = [outputs("out", "w"), inputs("image", "w"), "w"]
    two: Any = [outputs("out", "columns rows"), inputs("image", "rows columns"), "rows", "columns"]
    kernels: Any = {
        "blur": Kernel("blur", one, file="imaging/blur.cu", block=32, over=("w",)),
        "sharpen": Kernel("sharpen", one, file="imaging/sharpen.cu", block=32, over=("w",), reference=abs),
        **{
            name: Kernel(name, two, file="imaging/turn.cu", block=32, over=("columns", "rows"), reference=abs)
            for name in MATRICES["kernel"]
        },
    }
    blur = Sweep("Blur", "Blur, DRAM", {**TIMED, "w": (64, 256)}, kernel="blur", note="Told of every figure.")
    matrices = Sweep("Matrices", "Matrices, DRAM", MATRICES)
    copy = Sweep("DeviceCopy", "Copy", AXES[COPY], module="time_copy", kernel="device_copy")
    compiled = Sweep("Compiled", "Compiled", COMPILED, module="track_compiled")
    return Suite(kernels=lambda: kernels, timed=(blur, matrices), copy=copy, counted=(blur,), compiled=compiled)


def _made(root: Path) -> dict[str, str]:
    """Make the repository with results of three machines; what its commits are called here, by their hashes."""
    begin(root)
    stored: dict[str, dict[str, dict[str, dict[str, Outcome]]]] = {"no-gpu-x86_64": {}, "nvidia-h200": {}, HOSTILE: {}}
    names: dict[str, str] = {}
    codes, failed = [], []
    for place, (subject, (files, (seconds, sectors, spilled))) in enumerate(STORY.items()):
        if subject == ASIDE:
            git.text(root, "checkout", "--quiet", "-b", "side")
        with mock.patch.dict(os.environ, GIT_COMMITTER_DATE=f"@{place} +0000"):  # it orders commits of two branches
            made = commit(root, files, subject)
        if subject == ASIDE:
            git.text(root, "checkout", "--quiet", "main")
        names[made] = f"commit{place}"
        without, on_gpu, hostile = (every.setdefault(made, {}) for every in stored.values())
        if seconds is not None:
            times = [seconds * factor for factor in (1, 2, 3, 4)]
            on_gpu[TIME] = _cases(*(None if math.isnan(each) else samples(each) for each in times))
            on_gpu[COPIES] = _cases(*(None if math.isnan(each) else each / 2e-5 for each in times))
            failed += [{"commit": made, "benchmark": TIME, "reason": f"k {HOSTILE}", "configurations": 4}] * math.isnan(
                seconds
            )
        if subject in TURNS:
            on_gpu[TURNED] = _cases(*map(samples, TURNS[subject][:8]))
            on_gpu[COPY] = _cases(*map(samples, TURNS[subject][8:]))
        if sectors is not None:
            without[LOADED] = _cases(*[sectors] * 2, *[math.nan if subject == BREAKS else sectors] * 2)
            without[STORED] = _cases(*[math.nan if subject == KEEPS else 8.0] * 4)
            without[RATIO] = _cases(*[sectors / 4] * 4)
        if spilled is not None:
            without[SPILLED] = _cases(0.0, 0.0, spilled, spilled)
        on_gpu |= without if subject != ALONE else {}
        hostile |= on_gpu if place < 2 else {}
        known = TIMED["dtype"][: 1 if place == 0 else 2]  # of the first commit not all machine code is known
        code = "a" if subject == ASIDE else str(min(place, 1))
        codes.append({"commit": made, "arch": "sm_90", "cubins": {f"blur {each} {FLAGS}": code * 64 for each in known}})
    for machine, every in stored.items():
        write(root, {made: each for made, each in every.items() if each}, machine, axes=AXES)
    for path in (root / "results").glob("*/????????-*.json"):  # two commits of a moment
        change_document(path, lambda document: document.update(date=int(names[document["commit_hash"]][-1]) // 2))
    described = json.loads((root / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    for name, title in TITLES.items():
        described[name]["pretty_name"] = title
    described[SPILLED]["unit"] = HOSTILE
    (root / "results" / "benchmarks.json").write_text(json.dumps(described), encoding="utf-8")
    _records(root / "results", list(names), codes, failed)
    return names


def _records(results: Path, names: list[str], codes: list[Any], failed: list[Any]) -> None:
    """Write what runs recorded: two GPUs shared the newest commit, and one number of it was not measured again."""
    run = {"commits": names, "failed": failed, "arch": "sm_90", "peak_bytes_per_second": 1e9}
    first, second = ({**run, "before": {"uuid": f"GPU-{each * 8}-9"}} for each in "12")
    *others, newest, _ = names
    widths = ([f"{width}, {dtype}, {FLAGS}" for dtype in TIMED["dtype"]] for width in TIMED["w"])
    runs = [{**first, "commits": others}]
    for one, texts in zip((first, second), widths, strict=True):
        runs.append({**one, "commits": [newest], "selected": {TIME: texts, COPIES: texts}})
    reused = {"time_kernel.Blur": {others[1]: [f"64, float32, {FLAGS}"]}}
    moments = {"started": "2026-11-22T00:00:00+00:00", "ended": "2026-11-22T00:05:00+00:00"}
    reuse = {**moments, "fingerprints": {}, "commit": newest, "reused": reused}
    launch = source_lines.select_launches()[0]
    lines = {
        "key": source_lines.launch_key(launch),
        "counter": fingerprint.VERSION,
        "launch": str(launch),
        "text": LISTING,
    }
    _write(results / "nvidia-h200", {
        record.RUNS_FILE: runs, record.CUBINS_FILE: codes, record.FINGERPRINTS_FILE: [reuse],
        record.LINES_FILE: [{**lines, "accesses": COSTS}],
    })  # fmt: skip
    _write(results / HOSTILE, {
        record.RUNS_FILE: [{
            **run, "failed": [], "gpu": HOSTILE, "nvcc": HOSTILE, "after": {"driver": HOSTILE},
            "peak_bytes_per_second": None,
        }],
        record.CUBINS_FILE: [{**each, "arch": HOSTILE} for each in codes],
    })  # fmt: skip


def _write(folder: Path, files: Mapping[str, list[Any]]) -> None:
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def _cases(*outcomes: Outcome) -> dict[str, Outcome]:
    return {f"case {place}": each for place, each in enumerate(outcomes)}
