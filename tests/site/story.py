"""A made-up repository with results: changes, failures, partial runs, and hostile names."""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from asv.config import Config

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
from tests.stored import Outcome, change_document, samples, write, write_lines

FLAGS = "-Xptxas -O3"
TIMED = {"w": ("64", "256"), "dtype": ("float32", "float64"), "flags": (FLAGS,)}
COMPILED = {"kernel": ("blur", "sharpen"), "dtype": ("float32",), "flags": (FLAGS,), "arch": ("sm_80", "sm_90")}
SIZES, DTYPES = {"rows x columns": ("64x64", "8x8")}, {"dtype": ("float32",)}
MATRICES = {"kernel": ("flip", "turn"), **SIZES, **DTYPES, "flags": (FLAGS, "-O0")}
TIME, COPIES = "time_kernel.Blur.time_back_to_back", "track_control.Blur.track_copy_ratio"
TURNED, COPY = "time_kernel.Matrices.time_back_to_back", "time_copy.DeviceCopy.time_back_to_back"
LOADED, STORED = (f"track_counted.Blur.track_sectors_{direction}" for direction in ("loaded", "stored"))
RATIO, SPILLED = "track_counted.Blur.track_load_sectors", "track_compiled.Compiled.track_spill_bytes"
SPUN, SPIN = "time_kernel.Spin.time_back_to_back", {"w": ("64",), "dtype": ("float32",), "flags": (FLAGS,)}
AXES: dict[str, Any] = {
    **dict.fromkeys((TIME, COPIES, LOADED, STORED, RATIO), TIMED),
    SPILLED: COMPILED,
    TURNED: MATRICES,
    SPUN: SPIN,
    COPY: {**SIZES, **DTYPES},
}

#: A name that runs a script if a page takes it for markup. It names a folder, so it has no slash.
HOSTILE = '"><img src=x onerror="window.attacked=1">'
TITLES = {
    TIME: "Blur, DRAM", COPIES: "Blur, DRAM: copies", TURNED: "Matrices, DRAM", COPY: "Copy, DRAM",
    SPUN: "Spin, DRAM", SPILLED: HOSTILE,
    LOADED: "Blur, counted: sectors loaded", STORED: "Blur, counted: sectors stored",
    RATIO: "Blur, counted: load sectors",
}  # fmt: skip

SOURCE = (
    "// A blur.\n__global__ void blur(float* out, const float* image, int w)\n{\n    out[threadIdx.x] = image[0];\n}\n"
)
ACCEPTED = '[[regression]]\nkernel = "sharpen"\nnumber = "spill bytes"\nreason = "it keeps a row"\n'
#: The stored listing of `blur`, with two accesses in its file and one in a header.
LISTING = (
    "      1  // A blur, of an image whose rows are so long that no line of a phone has room for them.\n"
    "        ...\n>>    4      out[threadIdx.x] = image[0];\n         ^ load: 1\n"
    ">>       ^ store: 8\n"
    "other.cuh:\n      4  tile[0] = 1;\n         ^ shared store: 2"
)
#: The stored costs of these lines: sectors, and wavefronts in the header.
COSTS = [
    {"file": 0, "line": 4, "unit": "sectors", "amount": 3, "now": [1, 1 << 31], "best": [(1 << 8) - 1]},
    {"file": 1, "line": 4, "unit": "wavefronts", "amount": 1, "now": [3], "best": []},
]

#: Subjects of commits: on a side branch, measured without a GPU, and the last with times.
ASIDE, ALONE, LAST = "Blur aside", "Sharpen spills less", "Blur along rows"
#: Subjects of commits: with an accepted regression, and with failures.
KEEPS, BREAKS = "Sharpen keeps a row", "Blur \x1bbreaks"

#: Subject -> changed files, and three numbers: seconds and loaded sectors of `blur`, and spilled bytes of `sharpen`.
#: NaN stands for a failure, None for a number that was not measured.
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
#: Subject -> seconds of `flip` and `turn` at 64x64 and 8x8 for each set of flags, then those of the plain copy.
TURNS = {
    "Blur and sharpen": (*[1e-4, 2e-4, 3e-5, 4e-5] * 2, 5e-5, 1e-5),
    LAST: (1e-4, 2.1e-4, 3e-5, 4e-5, 1.5e-4, 2e-4, 2.5e-5, 4e-5, 5e-5, 1e-5),
}
#: Subject -> seconds of `spin`. Another version of Triton generates its PTX at the last commit.
SPINS = {"Blur and sharpen": 2e-5, f"Blur <down> {HOSTILE}": 2e-5, LAST: 4e-5}
OLD, NEW = {"triton": "3.8.0"}, {"triton": "3.9.0"}


@contextmanager
def publish_site(folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Publish the site of the repository; yield its folder, and the commits' names in golden texts by hash."""
    root = folder / "repository"
    with pytest.MonkeyPatch.context() as patch:
        suite = _suite()
        patch.setattr(registry, "current_suite", lambda: suite)
        patch.setattr(settings, "package_name", lambda: "")
        patch.setenv(cache_dir.CACHE, str(folder / "cache"))
        patch.setenv(CHECKOUT, str(root))
        patch.setattr(publisher, "ROOT", root)
        commits.find_measured_paths.cache_clear()
        names = _make_repository(root)
        yield publisher.write_site(load_config(root, folder / "html"), root), names
    commits.find_measured_paths.cache_clear()


def load_config(root: Path, html: Path) -> Config:
    config = Config.load(str(root / "asv.conf.json"))
    config.repo, config.results_dir, config.html_dir = str(root), str(root / "results"), str(html)
    return config


def _suite() -> Suite:
    """Return a suite without a package. The suite's kernel `blur` has no reference."""
    parameters: Any = [outputs("out", "w"), inputs("image", "w"), "w"]
    matrix_parameters: Any = [outputs("out", "columns rows"), inputs("image", "rows columns"), "rows", "columns"]
    kernels: Any = {
        "blur": Kernel("blur", parameters, file="imaging/blur.cu", block=32, over=("w",)),
        "sharpen": Kernel("sharpen", parameters, file="imaging/sharpen.cu", block=32, over=("w",), reference=abs),
    }
    turn: Any = {"file": "imaging/turn.cu", "block": 32, "over": ("columns", "rows"), "reference": abs}
    kernels |= {name: Kernel(name, matrix_parameters, **turn) for name in MATRICES["kernel"]}
    kernels["spin"] = Kernel("spin", parameters, ptx="imaging.spin:generate", block=32, over=("w",), reference=abs)
    blur = Sweep("Blur", "Blur, DRAM", {**TIMED, "w": (64, 256)}, kernel="blur", note="Told of every figure.")
    matrices = Sweep("Matrices", "Matrices, DRAM", MATRICES)
    spin = Sweep("Spin", "Spin, DRAM", {**SPIN, "w": (64,)}, kernel="spin")
    copy = Sweep("DeviceCopy", "Copy", AXES[COPY], module="time_copy", kernel="device_copy")
    compiled = Sweep("Compiled", "Compiled", COMPILED, module="track_compiled")
    return Suite(kernels=lambda: kernels, timed=(blur, matrices, spin), copy=copy, counted=(blur,), compiled=compiled)


def _make_repository(root: Path) -> dict[str, str]:
    """Make the repository with results of three machines; return the commits' names in golden texts by hash."""
    begin(root)
    stored: dict[str, dict[str, dict[str, dict[str, Outcome]]]] = {"no-gpu-x86_64": {}, "nvidia-h200": {}, HOSTILE: {}}
    names: dict[str, str] = {}
    codes, failures = [], []
    for place, (subject, (files, (seconds, sectors, spilled))) in enumerate(STORY.items()):
        if subject == ASIDE:
            git.text(root, "checkout", "--quiet", "-b", "side")
        with mock.patch.dict(os.environ, GIT_COMMITTER_DATE=f"@{place} +0000"):  # orders commits of both branches
            commit_hash = commit(root, files, subject)
        if subject == ASIDE:
            git.text(root, "checkout", "--quiet", "main")
        names[commit_hash] = f"commit{place}"
        without, on_gpu, hostile = (commits.setdefault(commit_hash, {}) for commits in stored.values())
        if seconds is not None:
            times = [seconds * factor for factor in (1, 2, 3, 4)]
            on_gpu[TIME] = _cases(*(None if math.isnan(time) else samples(time) for time in times))
            on_gpu[COPIES] = _cases(*(None if math.isnan(time) else time / 2e-5 for time in times))
            failure = {"commit": commit_hash, "benchmark": TIME, "reason": f"k {HOSTILE}", "configurations": 4}
            failures += [failure] * math.isnan(seconds)
        if subject in TURNS:
            on_gpu[TURNED] = _cases(*map(samples, TURNS[subject][:8]))
            on_gpu[COPY] = _cases(*map(samples, TURNS[subject][8:]))
        if subject in SPINS:
            on_gpu[SPUN] = _cases(samples(SPINS[subject]))
        if sectors is not None:
            without[LOADED] = _cases(*[sectors] * 2, *[math.nan if subject == BREAKS else sectors] * 2)
            without[STORED] = _cases(*[math.nan if subject == KEEPS else 8.0] * 4)
            without[RATIO] = _cases(*[sectors / 4] * 4)
        if spilled is not None:
            without[SPILLED] = _cases(0.0, 0.0, spilled, spilled)
        on_gpu |= without if subject != ALONE else {}
        hostile |= on_gpu if place < 2 else {}
        dtypes = TIMED["dtype"][: 1 if place == 0 else 2]  # the first commit lacks some hashes of machine code
        code = "a" if subject == ASIDE else str(min(place, 1))
        cubins = {f"blur {dtype} {FLAGS}": code * 64 for dtype in dtypes}
        # The times of `flip` are measured only at the first commit and at LAST.
        cubins[f"flip float32 {FLAGS}"] = str(int(subject == LAST)) * 64
        codes.append({"commit": commit_hash, "arch": "sm_90", "cubins": cubins})
    for machine, stored_commits in stored.items():
        results = {commit_hash: outcomes for commit_hash, outcomes in stored_commits.items() if outcomes}
        write(root, results, machine, axes=AXES)
    for path in (root / "results").glob("*/????????-*.json"):  # two commits each have equal dates
        change_document(path, lambda document: document.update(date=int(names[document["commit_hash"]][-1]) // 2))
    benchmarks = json.loads((root / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    for name, title in TITLES.items():
        benchmarks[name]["pretty_name"] = title
    benchmarks[SPILLED]["unit"] = HOSTILE
    (root / "results" / "benchmarks.json").write_text(json.dumps(benchmarks), encoding="utf-8")
    _records(root / "results", list(names), codes, failures)
    return names


def _records(results: Path, names: list[str], codes: list[Any], failed: list[Any]) -> None:
    """Write the records: two GPUs measured the last timed commit, and one number was reused."""
    run = {"commits": names, "failed": failed, "arch": "sm_90", "peak_bytes_per_second": 1e9}
    first, second = ({**run, "before": {"uuid": f"GPU-{digit * 8}-9"}} for digit in "12")
    *earlier, newest, _ = names
    widths = ([f"{width}, {dtype}, {FLAGS}" for dtype in TIMED["dtype"]] for width in TIMED["w"])
    runs = [{**first, "commits": earlier, "generators": OLD}]
    for run_of_gpu, texts in zip((first, second), widths, strict=True):
        runs.append({**run_of_gpu, "commits": [newest], "selected": {TIME: texts, COPIES: texts}})
    runs.append({**second, "commits": [newest], "selected": {SPUN: [f"64, float32, {FLAGS}"]}, "generators": NEW})
    reused = {"time_kernel.Blur": {earlier[1]: [f"64, float32, {FLAGS}"]}}
    moments = {"started": "2026-11-22T00:00:00+00:00", "ended": "2026-11-22T00:05:00+00:00"}
    reuse = {**moments, "fingerprints": {}, "commit": newest, "reused": reused}
    launch = source_lines.select_launches()[0]
    lines = {
        "key": source_lines.launch_key(launch),
        "counter": fingerprint.format_counter_version(),
        "launch": str(launch),
    }
    folder = write_lines(results / "nvidia-h200" / record.RUNS_FILE, *runs)
    write_lines(folder / record.CUBINS_FILE, *codes)
    write_lines(folder / record.FINGERPRINTS_FILE, reuse)
    write_lines(folder / record.LINES_FILE, {**lines, "text": LISTING, "accesses": COSTS})
    facts = {"gpu": HOSTILE, "nvcc": HOSTILE, "after": {"driver": HOSTILE}, "peak_bytes_per_second": None}
    write_lines(results / HOSTILE / record.RUNS_FILE, {**run, "failed": [], **facts})
    write_lines(results / HOSTILE / record.CUBINS_FILE, *({**code, "arch": HOSTILE} for code in codes))


def _cases(*outcomes: Outcome) -> dict[str, Outcome]:
    return {f"case {place}": outcome for place, outcome in enumerate(outcomes)}
