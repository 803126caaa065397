"""What is timed of two compilers: the configurations whose machine code differs, as asv finds them."""

from __future__ import annotations

import re

from experiments.compilers import patterns
from kernelwatch.asv import suite


def test_patterns() -> None:
    """One a benchmark; each finds the times of that machine code, and the ratios beside them, and no other."""
    cubins = {"transpose_vectorized int8 -Xptxas -O3", "offset_copy float32 -Xptxas -dlcm=cg"}
    found = list(patterns(cubins))
    assert len(found) < len(suite.BENCHMARKS)
    matched = set()
    for name, (kind, sweep) in suite.BENCHMARKS.items():
        timed = kind in (suite.Kind.TIMED, suite.Kind.CONTROL)
        for point in sweep.points():
            text = f"{name}({', '.join(map(repr, point.values()))})"
            wanted = timed and suite.machine_code(name, point) in cubins
            assert any(re.search(pattern, text) for pattern in found) == wanted
            matched |= {suite.machine_code(name, point)} if wanted else set()
    assert matched == cubins
