"""The published site in a headless Chromium, driven from Node: `*.test.js`, a file an idea."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from tests.site import browser
from tests.site.known import known

#: What files of tests find in the environment, and the fixture that publishes it.
SITES = {"SITE": "site", "BARE_SITE": "bare_site", "HOSTILE_SITE": "hostile_site"}


@pytest.mark.browser
@pytest.mark.parametrize("file", sorted(path.name for path in browser.HERE.glob("*.test.js")))
def test_in_a_browser(file: str, request: pytest.FixtureRequest) -> None:
    """Every page, with the network blocked; the names in the output say what is looked at."""
    wanted = re.findall(r"process\.env\.(\w*SITE)\b", (browser.HERE / file).read_text(encoding="utf-8"))
    environment = {
        **os.environ,
        # Publishing takes longer than most tests: only what the file asks for.
        **{name: str(request.getfixturevalue(SITES[name])) for name in sorted(set(wanted))},
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
