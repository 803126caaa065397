"""The published site in a headless Chromium, driven from Node: `*.test.js`, a file an idea."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.site import browser
from tests.site.known import known


@pytest.mark.browser
@pytest.mark.parametrize("file", sorted(path.name for path in browser.HERE.glob("*.test.js")))
def test_in_a_browser(file: str, site: Path, bare_site: Path, hostile_site: Path) -> None:
    """Every page, with the network blocked; the names in the output say what is looked at."""
    environment = {
        **os.environ,
        "SITE": str(site),
        "BARE_SITE": str(bare_site),
        "HOSTILE_SITE": str(hostile_site),
        "CHROMIUM": str(browser.CHROMIUM),
        "KNOWN": json.dumps(known()),
    }
    done = subprocess.run(
        ["node", "--test", "--test-reporter=spec", file],
        cwd=browser.HERE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
