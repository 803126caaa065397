"""Writing the site again after results changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelwatch.config import cache_dir
from kernelwatch.show.site import publisher
from tests import stored
from tests.commits import begin, commit
from tests.site import story
from tests.stored import COUNT


def test_a_later_write_equals_a_fresh_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept commits make the files that all results make, after some changed, went, and came."""
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
