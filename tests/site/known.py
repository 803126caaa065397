"""What must be seen on the pages, from the stored results and nothing of the site's own code."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime
from typing import Any

from gpu_kernels import KERNELS
from kernelwatch.metrics import METRICS
from kernelwatch.project import ROOT
from kernelwatch.store import record
from kernelwatch.store.results import History
from tests.site import made_up

MACHINE, COMPILED_ON = "nvidia-h200", "no-gpu-x86_64"
TRANSPOSE = "time_transpose.Transpose.time_back_to_back"
STRIDE, COPY = "time_copy.StrideCopy.time_back_to_back", "time_copy.DeviceCopy.time_back_to_back"
PRODUCT = "time_kernel.MatrixProduct.time_back_to_back"
KERNEL, SIZE, DTYPE, FLAGS = made_up.CHANGED, "12800x12800", "float32", "-Xptxas -O3"


def known() -> dict[str, Any]:
    """By name, as the browser's tests look for it."""
    history = History(MACHINE)
    newest = history.newest(COPY)  # other runs measured some kernels alone
    assert newest is not None
    peak = history.run_of(newest)["peak_bytes_per_second"]
    params = {"kernel": KERNEL, "rows x columns": SIZE, "dtype": DTYPE, "flags": FLAGS}
    # Some commits measured other kernels only.
    measured = {each: found for each in history.commits() if (found := history.commit(each))}
    commits = [each for each, found in measured.items() if history.value(found, TRANSPOSE, params) is not None]
    # The newest that not all that is measured today was measured of.
    older = [commit for commit in commits if history.why_not_run(measured[commit], PRODUCT)][-1]

    def value(commit: str, benchmark: str, params: dict[str, str]) -> float:
        results = history.commit(commit)
        assert results is not None
        found = history.value(results, benchmark, params)
        assert found is not None
        return found

    def cells(useful: int, seconds: float) -> list[str]:
        rate = useful / seconds
        return [f"{seconds * 1e6:.1f}", f"{rate / 1e9:.0f}", f"{100 * rate / peak:.1f}"]

    head = newest.commit_hash
    useful = KERNELS[KERNEL].useful_bytes(DTYPE, rows=12800, columns=12800)
    seconds = {commit: value(commit, TRANSPOSE, params) for commit in commits}
    moved = 2 * 4 * 4194304
    at = {"size": "4194304", "dtype": DTYPE, "flags": FLAGS}
    strided = value(head, STRIDE, {"stride": "2", **at})
    transpose = cells(useful, seconds[head])
    compared = [f"{useful / seconds[older] / 1e9:.0f}", f"{seconds[older] / seconds[head]:.3f}"]
    return {
        "machine": MACHINE,
        "commit": head[:8],
        "older_commit": older[:8],
        "changed_commit": commits[1][:8],
        "changed_kernel": KERNEL,
        "shared": made_up.SHARED,
        "hostile": made_up.HOSTILE,
        "hostile_commit": next(each for each in commits if each.startswith(made_up.HOSTILE_COMMITS[-1])),
        "bandwidth_rows": [
            [KERNEL, FLAGS, *transpose],
            [DTYPE, "2", *cells(moved, strided)],
        ],
        "compared_rows": [[KERNEL, place, *transpose, *compared] for place in (FLAGS, SIZE)],
        "bandwidth_figure": f"Transpose, DRAM, {SIZE}, {DTYPE}",
        "bandwidth_titles": [f"{KERNEL}, {FLAGS}: {transpose[1]} GB/s, {transpose[2]} % of peak"],
        "gpu": gpu(head),
        "compared_gpus": sorted({gpu(head), gpu(older)}),
        "transactions_rows": [_counted(kernel) for kernel in ("transpose_read_coalesced", f"{KERNEL}_unpadded")],
        "changes": _changes(),
    }


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _changes() -> dict[str, Any]:
    """What the page of a commit that made many kernels slower must say; a review of the two says the same."""
    commit = "740a7872b13f3fc74408f59cea51df6a85d996d9"
    return {
        "commit": commit,
        "sentence": r"transpose_read_write_coalesced is \d\.\d % slower in \d+ of 48 times",
        "subject": git("%s", commit),
        "author": git("%an", commit),
        "files": git("", commit, "--name-only").splitlines()[:3],
        "compared": f"Compared with 98a96e03 “{git('%s', '98a96e03')}”, the commit before.",
        "accepted": made_up.ACCEPTED,
        "newest": r"ab7cbc0c matmul_tiled: wavefronts -40 %",
    }


def git(form: str, commit: str, *options: str) -> str:
    """What git says of a commit."""
    words = ["git", "show", "--no-patch" if not options else "", f"--format={form}", *options, commit]
    said = subprocess.run([word for word in words if word], cwd=ROOT, capture_output=True, text=True, check=True)
    return said.stdout.strip()


def gpu(commit: str) -> str:
    """The first digits of the UUID of the GPU that took a commit's times: of the one run under way when they began."""
    results = ROOT / "results"
    stored = json.loads((results / MACHINE / f"{commit[:8]}-virtualenv-py3.json").read_text(encoding="utf-8"))
    began = stored["results"][TRANSPOSE][stored["result_columns"].index("started_at")] / 1000
    (uuid,) = {
        run["before"]["uuid"]
        for run in record.read(results, MACHINE)
        if commit in run["commits"]
        and datetime.fromisoformat(run["started"]).timestamp() - 1 <= began
        and began <= datetime.fromisoformat(run["ended"]).timestamp() + 1
    }
    return str(uuid).split("-")[1]


def _counted(kernel: str) -> list[str]:
    """A kernel and those of the metrics that the newest counted commit has."""
    history = History(COMPILED_ON)
    names = [f"track_counted.Transpose.track_{metric}" for metric in METRICS]
    newest = history.newest(names[0])
    assert newest is not None
    values = [history.value(newest, name, {"kernel": kernel, "dtype": DTYPE, "flags": FLAGS}) for name in names]
    return [kernel, *(_digits(value) for value in values if value is not None)]
