"""A link in place of the folder of pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from asv.config import Config

from kernelwatch.show.site import publisher


def test_link_is_refused(tmp_path: Path) -> None:
    """Both writes fail, and the link's target stays as it is."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "mine").write_text("mine")
    conf = Config()
    conf.html_dir, conf.results_dir = str(tmp_path / "html"), str(tmp_path / "results")
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / publisher.FOLDER).symlink_to(target)
    for _ in range(2):
        with pytest.raises(FileExistsError, match="is a link, and its target would be removed; remove the link"):
            publisher.write_site(conf, None)
        assert [path.name for path in target.iterdir()] == ["mine"]
