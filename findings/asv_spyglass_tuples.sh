#!/usr/bin/env bash
# Guess, written after reading the source: `asv-spyglass to-df` gives each parameter of a benchmark its column, so that a
# table can be grouped by it.
# What happens: a name such as `track_sectors(1024, (32, 8))` is split at its last parenthesis and at commas. The column
# of n has 32, that of the block "8)", and 1024 is only in the benchmark's name. A string with a comma is cut in two, and
# its second half dropped. `compare` keeps the names whole.
# Version: asv-spyglass 0.3.1 with asv 0.6.6. Seen on 1 December 2026.
# Why it matters: shapes of blocks and tiles are tuples. Grouped by n, results are those of the block's width, and the
# sizes of the arrays cannot be told apart. All columns are there and nothing is warned of.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Its metadata asks for Python 3.12; it runs with 3.11, too.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check --ignore-requires-python --no-deps asv-spyglass==0.3.1
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check asv==0.6.6 asv-runner==0.3.2 click==8.5.1 \
  rich-click==1.9.9 polars==2.1.0 tabulate==0.10.0

mkdir "$work/machine"
cd "$work"
cat >write.py <<'PYTHON'
import csv
import json
import sys
from importlib import metadata

PARAMETERS = {
    "kernels.track_sectors": {"n": ["1024", "4096"], "block": ["(32, 8)", "(16, 16)"]},
    "kernels.track_kinds": {"kind": ["'float, aligned'", "'double'"]},
    "kernels.track_plain": {"n": ["1024", "4096"]},
}
if sys.argv[1] == "write":
    columns = ["result", "params", "version", "started_at", "duration"]
    results = {
        name: [[10 * number for number in range(1, 5 if len(parameters) > 1 else 3)], list(parameters.values()), "v1", 1, 1]
        for name, parameters in PARAMETERS.items()
    }
    document = {
        "commit_hash": "a" * 40, "env_name": "virtualenv", "date": 1, "params": {"machine": "machine"}, "python": "3",
        "requirements": {}, "env_vars": {}, "result_columns": columns, "results": results, "durations": {}, "version": 2,
    }
    json.dump(document, open("machine/aaaaaaaa-virtualenv.json", "w"))
    benchmarks = {
        name: {"name": name, "code": "", "type": "track", "unit": "sectors", "version": "v1", "timeout": 60,
               "param_names": list(parameters), "params": list(parameters.values())}
        for name, parameters in PARAMETERS.items()
    }
    json.dump(benchmarks | {"version": 2}, open("benchmarks.json", "w"))
else:
    print("asv-spyglass", metadata.version("asv-spyglass"))
    for row in csv.DictReader(open("table.csv")):
        columns = {key: row[key] for key in row if key.startswith("param_") and row[key]}
        print(f"{row['name'].removeprefix('kernels.')} of {row['benchmark_base'].removeprefix('kernels.')}: {columns}")
PYTHON
"$work/venv/bin/python" write.py write
"$work/venv/bin/asv-spyglass" to-df machine/aaaaaaaa-virtualenv.json benchmarks.json --csv table.csv >/dev/null
"$work/venv/bin/python" write.py show | tee seen

expected="asv-spyglass 0.3.1
track_sectors(1024, (32, 8)) of track_sectors(1024, : {'param_n': '32', 'param_block': '8)'}
track_sectors(1024, (16, 16)) of track_sectors(1024, : {'param_n': '16', 'param_block': '16)'}
track_sectors(4096, (32, 8)) of track_sectors(4096, : {'param_n': '32', 'param_block': '8)'}
track_sectors(4096, (16, 16)) of track_sectors(4096, : {'param_n': '16', 'param_block': '16)'}
track_kinds('float, aligned') of track_kinds: {'param_kind': \"'float\"}
track_kinds('double') of track_kinds: {'param_kind': \"'double'\"}
track_plain(1024) of track_plain: {'param_n': '1024'}
track_plain(4096) of track_plain: {'param_n': '4096'}"
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
