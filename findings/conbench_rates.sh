#!/usr/bin/env bash
# Guess, written after the first sign: Conbench's comparison calls it an improvement if a bandwidth rises, in GB/s as in
# B/s.
# What happens: in B/s and i/s alone. Of each other unit less is better: from 1000 to 2000 GB/s is a change of -100 %
# and a regression, and half of the GFLOP/s is an improvement. So is half of an occupancy in %.
# A count that goes from 0 to 64 has a change of 0, and is no regression.
# Version: conbench 2023.4.10. Its comparison runs without the server's other modules. Seen on 1 December 2026.
# Why it matters: any text is accepted as a unit, and kernels' rates are given in GB/s, TFLOP/s or %. The answers of
# the server have these verdicts. The sign of the z-score follows the same function, so alerts have the wrong sign, too.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" conbench==2023.4.10
export PYTHONPATH="$work/packages"

cat >"$work/compare.py" <<'PYTHON'
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

# The packages' own __init__ would start the server, which needs a database.
folder = Path(metadata.distribution("conbench").locate_file("conbench"))
for name, path in ("conbench", folder), ("conbench.entities", folder / "entities"):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [str(path)]
entity = sys.modules["conbench.entities._entity"] = ModuleType("conbench.entities._entity")
entity.to_float = lambda value: None if value is None else float(value)

from conbench.entities._comparator import BenchmarkComparator


def describe(unit, value):
    """Describe a result as the server does."""
    texts = dict.fromkeys(("id", "batch_id", "run_id", "batch", "benchmark", "language"), "copy")
    return texts | {"unit": unit, "value": value, "error": None, "z_score": None, "tags": {}}


def compare(unit, old, new):
    seen = BenchmarkComparator(describe(unit, old), describe(unit, new)).compare()
    verdict = "regression" if seen["regression"] else "improvement" if seen["improvement"] else "neither"
    print(f"{old} to {new} {unit}: {seen['change']} %, {verdict}, less is better: {seen['less_is_better']}")


print("conbench", metadata.version("conbench"))
compare("s", "1", "2")
compare("B/s", "1000000000000", "2000000000000")
compare("GB/s", "1000", "2000")
compare("GFLOP/s", "2000", "1000")
compare("%", "80", "40")
compare("sectors", "0", "64")
PYTHON
python3 "$work/compare.py" | tee "$work/seen"

expected='conbench 2023.4.10
1 to 2 s: -100.000 %, regression, less is better: True
1000000000000 to 2000000000000 B/s: 100.000 %, improvement, less is better: False
1000 to 2000 GB/s: -100.000 %, regression, less is better: True
2000 to 1000 GFLOP/s: 50.000 %, improvement, less is better: True
80 to 40 %: 50.000 %, improvement, less is better: True
0 to 64 sectors: 0.000 %, neither, less is better: True'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
