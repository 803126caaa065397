"""Programs and packages that the tests in a browser need."""

import json
import shutil
from pathlib import Path

HERE = Path(__file__).parent

PACKAGES = tuple(json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"])

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def explain_absence() -> str | None:
    """Return the reason why the tests cannot run here, or None."""
    if shutil.which("node") is None:
        return "node is not installed"
    if CHROMIUM is None:
        return "Chromium is not installed"
    missing = [name for name in PACKAGES if not (HERE / "node_modules" / name).is_dir()]
    if missing:
        return f"not installed: {', '.join(missing)}; run: make tests/site/node_modules"
    return None
