"""Programs and packages that the browser test needs."""

from __future__ import annotations

import shutil
from pathlib import Path

HERE = Path(__file__).parent

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


def explain_absence() -> str | None:
    """Return the reason why the test cannot run here, or None."""
    if shutil.which("node") is None:
        return "node is not installed"
    if CHROMIUM is None:
        return "Chromium is not installed"
    if not all((HERE / "node_modules" / name).is_dir() for name in ("playwright-core", "axe-core")):
        return "Playwright's core package and axe-core are not installed; run: make tests/site/node_modules"
    return None
