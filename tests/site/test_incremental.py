"""Writing the site again, after changed results, and over links and files of an earlier site."""

import json
import os
import shutil
from pathlib import Path

import pytest
from asv.config import Config

from kernelwatch.config import cache_dir
from kernelwatch.show.site import publisher
from kernelwatch.show.site.site_folder import SiteFolder
from tests import stored
from tests.commits import begin, commit
from tests.site import story
from tests.stored import COUNT


def test_later_site_equals_a_fresh_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are changed, removed and added between the two."""
    root = begin(tmp_path / "project")
    commits = [commit(root) for _ in range(4)]
    values = dict(zip(commits, (1.0, 2.0, 2.0, 1.5), strict=True))
    stored.write(root, {name: {COUNT: {"one": value}} for name, value in values.items()})
    folder = root / "results" / "gpu"
    files = [next(folder.glob(f"{name[:8]}-*.json")) for name in commits]
    shutil.move(files[3], tmp_path / "aside")
    monkeypatch.setattr(publisher, "ROOT", root)
    monkeypatch.setenv(cache_dir.CACHE, str(tmp_path / "cache"))

    def write_site(html: str = "html") -> dict[str, bytes]:
        return stored.contents(publisher.write_site(story.load_config(root, tmp_path / html), root))

    def write_afresh() -> dict[str, bytes]:
        shutil.move(tmp_path / "cache" / "index", tmp_path / "index")
        contents = write_site(f"fresh-{len(list(tmp_path.iterdir()))}")
        shutil.rmtree(tmp_path / "cache" / "index")
        shutil.move(tmp_path / "index", tmp_path / "cache" / "index")
        return contents

    first = write_site()
    stored.change_document(files[1], lambda document: document["results"][COUNT].__setitem__(0, [7.0]))
    hashes = {"commit": commits[2], "arch": "sm_90", "cubins": {"k float32": "a" * 64}}
    stored.write_lines(root / "results" / "other" / f"{commits[2][:8]}-x.cubins.jsonl", hashes)
    second = write_site()
    assert second == write_afresh() != first
    files[0].unlink()
    files[2].unlink()
    shutil.move(tmp_path / "aside", files[3])
    assert write_site() == write_afresh() != second


def test_link_as_site_folder_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "mine").write_text("mine")
    conf = Config()
    conf.html_dir, conf.results_dir = str(tmp_path / "html"), str(tmp_path / "results")
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / publisher.FOLDER).symlink_to(target)
    for _ in range(2):
        with pytest.raises(FileExistsError, match="is a link, and files of its target would be removed"):
            publisher.write_site(conf, tmp_path)
        assert [path.name for path in target.iterdir()] == ["mine"]


def test_empty_rows_of_asvs_list_are_dropped(tmp_path: Path) -> None:
    """Drop rows without a value, as asv 0.6.6 writes them: see findings/asv_list_of_skipped.sh."""
    rows = [{"name": "track_bytes", "idx": index, "last_value": value} for index, value in enumerate([None, 0.0, 16.0])]
    folder = tmp_path / "graphs" / "branch-main" / "machine-host"
    folder.mkdir(parents=True)
    for name in ("summary.json", "track_bytes.json"):
        (folder / name).write_text(json.dumps(rows))
    publisher.drop_empty_rows(tmp_path)
    assert json.loads((folder / "summary.json").read_text()) == rows[1:]
    assert json.loads((folder / "track_bytes.json").read_text()) == rows


def test_unchanged_files_are_not_written_again(tmp_path: Path) -> None:
    """Other files of an earlier site are removed, and links replaced by files."""
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
