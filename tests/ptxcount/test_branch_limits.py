"""Kernels with many branches: their analysis and execution end at a limit."""

import pytest

from ptxcount.util.errors import PtxError
from tests.ptxcount.snippets import execute_snippet, module

#: Number of branches; an analysis of all pairs of branches took minutes.
COUNT = 1000
#: Name -> repeated code, with {0} for its number and {1} for the number before, and the start of the error.
REPEATED = {
    "branch over nothing": ("@%p1 bra L{0};\nL{0}:\n", "StepLimitExceededError: PTX line "),
    "loop by itself": ("L{0}: @%p1 bra L{0};\n", "StepLimitExceededError: PTX line "),
    "branch between barriers": ("bar.sync 0;\n@%p1 bra L{0};\nL{0}:\n", "StepLimitExceededError: PTX line "),
    "loop around the one before":
        ("L{0}: @%p1 bra L{1};\n", "UnsupportedInstructionError: PTX line 4: '.entry snippet' cannot"),
}  # fmt: skip


@pytest.mark.parametrize(("repeated", "message"), REPEATED.values(), ids=REPEATED)
def test_many_branches_end_at_a_limit(repeated: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxcount.ptx.flow.MAX_VISITS", 100_000)
    body = "".join(repeated.format(turn, max(turn - 1, 0)) for turn in range(COUNT))
    with pytest.raises(PtxError) as caught:
        execute_snippet(module(f"setp.eq.u32 %p1, 1, 1;\n{body}", 0), [], step_limit=1000)
    assert f"{type(caught.value).__name__}: {caught.value}".startswith(message)
