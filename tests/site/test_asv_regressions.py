"""Settings in asv.conf.json for asv's page "Regressions"."""

import ast
import copy
import itertools
import json
import re
from pathlib import Path

import pytest
from asv._stats import get_weight
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.graph import GraphSet
from asv.plugins.regressions import Regressions
from asv.repo import get_repo
from asv.results import Results

from kernelwatch.config.project_root import ROOT
from kernelwatch.store import git, reading
from kernelwatch.store.cubins import CubinHashes
from kernelwatch.store.folders import list_machines
from kernelwatch.suite import launch_facts

TIME = "time_transpose.Transpose.time_back_to_back"
CONF = Config.load(str(ROOT / "asv.conf.json"))
SUITE = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))

#: Names of all configurations in the form that asv matches with patterns.
NAMES = [
    f"{benchmark['name']}({', '.join(params)})@main"
    for benchmark in SUITE.values()
    if isinstance(benchmark, dict)
    for params in itertools.product(*benchmark["params"])
]


@pytest.mark.parametrize("pattern", [*CONF.regressions_thresholds, *CONF.regressions_first_commits])
def test_each_pattern_matches_stored_configurations(pattern: str) -> None:
    """Asv matches a pattern from the start of `name(parameters)@branch`."""
    assert any(re.match(pattern, name) for name in NAMES)


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
def test_page_leaves_out_repeated_configurations(name: str, *, is_listed: bool) -> None:
    """Asv's page leaves out ratios, and other dtypes, flags and architectures than float32, -O3, sm_90."""
    assert f"{name}@main" in NAMES
    assert is_listed != any(re.match(pattern, f"{name}@main") for pattern in CONF.regressions_first_commits)


@pytest.mark.history
def test_page_is_short(tmp_path: Path) -> None:
    """Asv's page has at most 60 rows, each a rise, and none twice. So has asv's feed.

    Each time that rose has other machine code than before.
    """
    conf, folder = copy.copy(CONF), ROOT / "results"
    conf.repo, conf.results_dir, conf.html_dir = str(ROOT), str(folder), str(tmp_path)
    repo, benchmarks, graphs = get_repo(conf), Benchmarks.load(conf), GraphSet()
    line = set(git.text(ROOT, "rev-list", "--first-parent", "HEAD").split())
    all_paths = [path for name in list_machines(folder) for path in reading.list_paths(folder / name, suffix=".json")]
    paths = [path for path in all_paths if "-" in path.name]
    documents = (Results.load(str(path), machine_name=path.parent.name) for path in paths)
    stored = [document for document in documents if document.commit_hash in line]
    revisions = repo.get_revisions({results.commit_hash for results in stored})
    left_out = [pattern for pattern, commit in conf.regressions_first_commits.items() if commit is None]
    # Detecting the steps of all configurations would take a minute. Those that are left out get no values.
    are_left_out = {
        name: [
            any(re.match(pattern, f"{name}({', '.join(params)})@main") for pattern in left_out)
            for params in itertools.product(*benchmarks[name]["params"])
        ]
        for name in benchmarks
    }
    for results in stored:
        for name in results.get_result_keys(benchmarks):
            if all(are_left_out[name]):
                continue
            stored_values = results.get_result_value(name, benchmarks[name]["params"])
            values = [None if out else value for out, value in zip(are_left_out[name], stored_values, strict=True)]
            params = {**results.params, **results.env_vars, "branch": "main"}
            graph = graphs.get_graph(name, params)
            stats = results.get_result_stats(name, benchmarks[name]["params"])
            weights = [get_weight(number) for number in stats]
            graph.add_data_point(revisions[results.commit_hash], values, weights)
    Regressions.publish(conf, repo, benchmarks, graphs, revisions)
    entries = json.loads((tmp_path / "regressions.json").read_text(encoding="utf-8"))["regressions"]
    rows = [(entry[2]["machine"], entry[0], step) for entry in entries for step in entry[6]]
    assert 0 < len(rows) <= 60, "the page is long"
    assert (tmp_path / "regressions.xml").read_text(encoding="utf-8").count("<entry>") == len(rows)
    # A step has the revisions before (None: the previous one) and after, and the values before and after.
    assert all(0 < old_value < new_value for *_, (_, _, old_value, new_value) in rows)
    assert len({(machine, name, tuple(step)) for machine, name, step in rows}) == len(rows)
    commits = {revision: commit for commit, revision in revisions.items()}
    for machine, name, (before, after, *_) in rows:
        if name.startswith("time_"):
            base, head = (commits[revision] for revision in (after - 1 if before is None else before, after))
            assert _find_code(machine, base, name) != _find_code(machine, head, name), f"{name} at {head}"


def _find_code(machine: str, commit: str, name: str) -> str | None:
    """Return the hash of the machine code of a time's kernel; `name` has the values of its axes in brackets."""
    benchmark, _, values = name.partition("(")
    params = dict(zip(SUITE[benchmark]["param_names"], ast.literal_eval(f"({values[:-1]},)"), strict=True))
    code_name = launch_facts.find_code_name(benchmark, params)
    assert code_name is not None
    return CubinHashes(ROOT / "results" / machine).find_cubin_hash(commit, "sm_90", code_name)
