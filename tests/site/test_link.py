"""The folder of the pages: links, and files of an earlier site."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from asv.config import Config

from kernelwatch.show.site import publisher
from kernelwatch.show.site.site_folder import SiteFolder


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
            publisher.write_site(conf, tmp_path)
        assert [path.name for path in target.iterdir()] == ["mine"]


def test_unchanged_files_stay_and_others_go(tmp_path: Path) -> None:
    """Only changed files are written; those of an earlier site, and links, are removed."""
    (tmp_path / "mine").write_text("mine")
    path = tmp_path / "site"
    for texts in ({"a/b": "1", "c": "1"}, {"a/b": "1", "d/e": "2"}):
        site = SiteFolder(path)
        for place, text in texts.items():
            site.write_text(place, text)
        site.remove_others()
        assert {str(file.relative_to(path)): file.read_text() for file in path.rglob("*") if file.is_file()} == texts
        os.utime(path / "a" / "b", (1, 1))
    assert not (path / "c").exists()
    (path / "d" / "e").unlink()
    (path / "d" / "e").symlink_to(tmp_path / "mine")
    SiteFolder(path).write_text("d/e", "3")
    assert ((path / "d" / "e").read_text(), (tmp_path / "mine").read_text()) == ("3", "mine")
    SiteFolder(path).write_text("a/b", "1")
    assert (path / "a" / "b").stat().st_mtime == 1
