"""Pages of `docs/evidence/` that are made from kept data: as they would be made now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from experiments import bias, kinds, pages, slowdowns
from experiments.peers import __main__ as peers


@pytest.mark.parametrize(
    ("page", "main"),
    [
        ("bias.md", bias.main),
        ("kinds.md", kinds.main),
        ("peers.md", peers.main),
        ("slowdowns.md", slowdowns.main),
    ],
)
def test_rendered(page: str, main: Callable[[Sequence[str]], int], tmp_path: Path) -> None:
    """A page that is stale is made again by: python -m experiments.NAME --render docs/evidence/NAME.md."""
    fresh = tmp_path / page
    assert main(["--render", str(fresh)]) == 0
    assert (pages.EVIDENCE / page).read_text(encoding="utf-8") == fresh.read_text(encoding="utf-8")
