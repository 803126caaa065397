"""Settings of asv's Regressions page: patterns and ranges that it omits."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from asv.config import Config

from kernelwatch.config.project_root import ROOT

TIME = "time_transpose.Transpose.time_back_to_back"
CONF = Config.load(str(ROOT / "asv.conf.json"))
SUITE = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))

#: Stored configurations in the form that asv matches.
NAMES = [
    f"{benchmark['name']}({', '.join(params)})@main"
    for benchmark in SUITE.values()
    if isinstance(benchmark, dict)
    for params in itertools.product(*benchmark["params"])
]


@pytest.mark.parametrize("pattern", [*CONF.regressions_thresholds, *CONF.regressions_first_commits])
def test_each_pattern_matches_stored_configurations(pattern: str) -> None:
    """Asv matches the start of `name(parameters)@branch`, so a pattern that ends in `$` matches nothing."""
    assert any(re.match(pattern, name) for name in NAMES)


#: A configuration, and whether asv's page lists its regressions.
LISTED = {
    f"{TIME}('transpose_read_coalesced', '256x256', 'float32', '-Xptxas -O3')": True,
    f"{TIME}('transpose_read_coalesced', '256x256', 'float64', '-Xptxas -O3')": False,
    f"{TIME}('transpose_read_coalesced', '256x256', 'float32', '-Xptxas -O0')": False,
    f"{TIME}('transpose_vectorized', '5003x2999', 'complex128', '-Xptxas -O0')": True,
    "track_control.Transpose.track_copy_ratio('transpose_read_coalesced', '256x256', 'float32', '-Xptxas -O3')": False,
    "track_counted.Transpose.track_bank_conflicts('transpose_vectorized', 'float32', '-Xptxas -O3')": True,
    "track_counted.Transpose.track_bank_conflicts('transpose_vectorized', 'int8', '-Xptxas -O3')": False,
    "track_compiled.Compiled.track_registers('matmul_tiled', 'float32', '-Xptxas -O3', 'sm_90')": True,
    "track_compiled.Compiled.track_registers('matmul_tiled', 'float32', '-Xptxas -O3', 'sm_80')": False,
}


@pytest.mark.parametrize(("name", "is_listed"), LISTED.items())
def test_listed_configurations(name: str, *, is_listed: bool) -> None:
    """Repeated entries are omitted: ratios, other flags, dtypes and architectures."""
    assert f"{name}@main" in NAMES
    assert is_listed != any(re.match(pattern, f"{name}@main") for pattern in CONF.regressions_first_commits)
