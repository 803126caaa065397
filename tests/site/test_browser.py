"""The published site in a headless Chromium, driven from Node."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.site import browser
from tests.site.known import known


@pytest.mark.browser
@pytest.mark.history
def test_in_a_browser(site: Path) -> None:
    """Every page, with the network blocked; the names in the output say what is looked at."""
    done = subprocess.run(
        ["node", "--test-reporter=spec", "all.js"],
        cwd=browser.HERE,
        env={**os.environ, "SITE": str(site), "CHROMIUM": str(browser.CHROMIUM), "KNOWN": json.dumps(known())},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
