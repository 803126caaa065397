"""The settings of pyproject.toml."""

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from kernelwatch.cli.compare import compare
from kernelwatch.config import settings
from kernelwatch.errors import KernelwatchError
from tests.stored import BASE, COUNT, HEAD, pair, write


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tool.kernelwatch]\ntrades = 'none'", "[tool.kernelwatch] has 'trades'; did you mean 'trade'? allowed are"),
        ("[tool.kernelwatch]\nx = 1", "[tool.kernelwatch] has 'x'; allowed are package, suite, trade, limits"),
        ("[tool.kernelwatch.limits]\ninstrutions = 2", "[tool.kernelwatch.limits] has 'instrutions'; did you mean 'in"),
        ("[tool.kernelwatch.limits]\nshared_bytes = 2", "[tool.kernelwatch.limits] has 'shared_bytes'; did you mean '"),
        ("[tool.kernelwatch]\nlimits = 3", "tool.kernelwatch.limits is 3; Expected `table`, got `int`"),
        ("[tool.kernelwatch]\npackage = ['a']", "tool.kernelwatch.package is ['a']; Expected `str`, got `array`"),
        ("[tool]\nkernelwatch = 3", "tool.kernelwatch is 3; Expected `table`, got `int`"),
        ("tool = 3", "tool is 3; Expected `table`, got `int`"),
        ("[tool.other]\nx = 1", ""),
    ],
)
def test_wrong_settings_are_refused(text: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, pair(base=1.0, head=1.0, benchmark=COUNT))
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.setattr(settings, "ROOT", tmp_path)
    settings._load_settings.cache_clear()
    refused = pytest.raises(KernelwatchError, match="^" + re.escape(f"{tmp_path / 'pyproject.toml'}: {problem}"))
    try:
        with refused if problem else nullcontext():
            assert compare([BASE, HEAD], tmp_path) == 0
    finally:
        settings._load_settings.cache_clear()
