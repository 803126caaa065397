"""The published site in a headless Chromium, driven from Node: `browser.test.js`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpu_kernels import KERNELS
from report.results import ROOT, History
from tests.site import browser
from tests.site.conftest import HOSTILE


def _known() -> dict[str, Any]:
    """What must be seen on the pages, from the stored results and nothing of the site's own code."""
    history = History("nvidia-h200")
    newest = history.newest("time_transpose.Transpose.time_back_to_back")
    assert newest is not None
    others = [commit for commit in history.commits() if commit != newest.commit_hash]
    peak = history.run_of(newest)["peak_bytes_per_second"]

    def cells(benchmark: str, useful: int, **params: str) -> list[str]:
        seconds = history.value(newest, benchmark, **params)
        assert seconds is not None
        rate = useful / seconds
        return [f"{seconds * 1e6:.1f}", f"{rate / 1e9:.0f}", f"{100 * rate / peak:.1f}"]

    kernel, flags = "transpose_read_write_coalesced", "-Xptxas -O3"
    useful = KERNELS[kernel].useful_bytes("float32", rows=12800, columns=12800)
    params = {"kernel": kernel, "rows_x_columns": "12800x12800", "dtype": "float32", "flags": flags}
    transpose = cells("time_transpose.Transpose.time_back_to_back", useful, **params)
    stride = cells(
        "time_copy.StrideCopy.time_back_to_back",
        2 * 4 * 4194304,
        stride="2",
        size="4194304",
        dtype="float32",
        flags=flags,
    )
    first = history.value(newest, "time_copy.StrideCopy.time_back_to_back", stride="1", dtype="float32", flags=flags)
    assert first is not None
    half = f"{2 * 4 * 4194304 / first / 1e9 / 2:.0f}"
    older = history.commit(others[-1])
    assert older is not None
    both = [
        history.value(results, "time_transpose.Transpose.time_back_to_back", **params) for results in (newest, older)
    ]
    assert both[0] is not None
    assert both[1] is not None
    return {
        "benchmark": "time_transpose.Transpose.time_back_to_back",
        "machine": "nvidia-h200",
        "commit": newest.commit_hash[:8],
        "older_commit": others[-1][:8],
        "hostile": HOSTILE,
        "compared_row": [kernel, flags, *transpose, f"{useful / both[1] / 1e9:.0f}", f"{both[1] / both[0]:.3f}"],
        "bandwidth_rows": [[kernel, flags, *transpose], ["float32", "2", *stride, half]],
        "bandwidth_titles": [f"{kernel}, {flags}: {transpose[1]} GB/s, {transpose[2]} % of peak"],
        "transactions_rows": [_counted(kernel) for kernel in ("transpose_read_coalesced", f"{kernel}_unpadded")],
    }


def _counted(kernel: str) -> list[str]:
    history = History("no-gpu-x86_64")
    row = [kernel]
    for metric in ("load_sectors", "store_sectors", "bank_conflicts", "instructions"):
        benchmark = f"track_counted.Transpose.track_{metric}"
        newest = history.newest(benchmark)
        assert newest is not None
        value = history.value(newest, benchmark, kernel=kernel, dtype="float32", flags="-Xptxas -O3")
        assert value is not None
        row.append(f"{value:.2f}" if value < 10 else f"{value:.1f}")
    return row


@pytest.mark.browser
def test_in_a_browser(site: Path, hostile_site: Path) -> None:
    """Every page renders with the network blocked; numbers, tabs, deep links, the policy, hostile names."""
    environment = {
        **os.environ,
        "SITE": str(site),
        "HOSTILE_SITE": str(hostile_site),
        "CHROMIUM": str(browser.CHROMIUM),
        "KNOWN": json.dumps(_known()),
    }
    if environment.get("SCREENSHOTS"):
        environment["SCREENSHOTS"] = str((ROOT / environment["SCREENSHOTS"]).absolute())
        Path(environment["SCREENSHOTS"]).mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["node", "--test", "--test-reporter=spec", "browser.test.js"],
        cwd=browser.HERE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
