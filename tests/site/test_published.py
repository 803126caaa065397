"""The published site as files: what it loads, what it holds, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.repo import get_repo

from kernelwatch import suite
from kernelwatch.counting import source_lines
from kernelwatch.counting import transactions as counting
from kernelwatch.instrument import fingerprint
from kernelwatch.project import ROOT
from kernelwatch.show.site import pages, publisher, transactions
from kernelwatch.store import folders, record
from kernelwatch.store.models import Cost, Lines
from kernelwatch.toolchain import nvcc_call
from tests import stored
from tests.commits import begin, commit

VENDOR = Path(pages.__file__).parent / "vendor"
MANIFEST = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))

#: Attributes by which an element loads something.
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src"}


class _Elements(HTMLParser):
    """Everything that a page loads, every attribute it has, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts = ""
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element loads, and its attributes."""
        self.attributes += attrs
        self.loaded += [value or "" for name, value in attrs if LOADING.get(tag) == name]
        self._in_script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        """Leave a script."""
        self._in_script = False

    def handle_data(self, data: str) -> None:
        """Note what stands in a script."""
        if self._in_script:
            self.scripts += data.strip()


@pytest.fixture(scope="session", params=[*(each.name for each in pages.PAGES), "commit/*"])
def page(site: Path, request: pytest.FixtureRequest) -> tuple[Path, _Elements]:
    """Each page of the site."""
    path = sorted(site.glob(f"{request.param}.html"))[0]
    return path, _Elements(path.read_text(encoding="utf-8"))


def test_nothing_is_loaded_from_another_host(page: tuple[Path, _Elements]) -> None:
    """All that a page loads is a file of the site."""
    path, elements = page
    assert elements.loaded
    for place in set(elements.loaded) - {"data:,"}:
        assert re.match(r"(\.\./)?[a-z_]+(\.|/)", place), place
        assert (path.parent / place).is_file(), place


def test_without_asvs_pages_none_is_linked(page: tuple[Path, _Elements]) -> None:
    """`kernelwatch site` makes these alone."""
    assert "asv’s pages" not in page[0].read_text(encoding="utf-8")


def test_no_script_stands_in_a_page(page: tuple[Path, _Elements]) -> None:
    """The policy allows none, neither in elements nor in attributes; and files of one's own need no integrity."""
    elements = page[1]
    assert elements.scripts == ""
    names = {name for name, _ in elements.attributes}
    assert not {name for name in names if name.startswith("on") or name in ("integrity", "crossorigin")}
    assert "script-src 'self';" in pages.POLICY
    assert ("content", pages.POLICY) in elements.attributes


def test_styles_load_nothing_from_another_host(site: Path) -> None:
    """No style sheet names another host."""
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", path.read_text(encoding="utf-8")), path


def test_vendored_files_are_those_of_the_manifest() -> None:
    """Each has its hash and its licence; none lies there that is not named."""
    there = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()}
    assert there == {"manifest.json", *(row[key] for row in MANIFEST for key in ("file", "licence_file"))}
    for row in MANIFEST:
        assert hashlib.sha256((VENDOR / row["file"]).read_bytes()).hexdigest() == row["sha256"]


def test_the_policy_knows_the_style_of_charts() -> None:
    """The hash is that of the text which Plot's source writes, with the class that the charts bear."""
    (source,) = (row["file"] for row in MANIFEST if row["package"] == "@observablehq/plot")
    found = re.findall(r"`(:where\(\.\$\{(\w+)\}\) [^`]*)`", (VENDOR / source).read_text(encoding="utf-8"))
    ((text, name),) = found
    written = text.replace("\\n", "\n").replace(f"${{{name}}}", "plot")
    digest = base64.b64encode(hashlib.sha256(written.encode()).digest()).decode()
    assert f"sha256-{digest}" == pages.PLOT_STYLE


def test_sources_say_what_a_line_costs() -> None:
    """Every kernel is there; one that no run has counted as it is now says so; shares are of all that is moved."""
    shown = {source["kernel"]: source for source in transactions.sources(ROOT / "results")}
    assert set(shown) == set(suite.current().kernels())
    assert all(bool(source["lines"]) == (source["problem"] is None) for source in shown.values())
    for source in shown.values():
        assert sum(line["share"] for line in source["lines"]) == pytest.approx(1.0 if source["lines"] else 0.0)
    (line,) = (each for each in shown["transpose_read_write_coalesced_unpadded"]["lines"] if each["is_costly"])
    assert line["costs"][0] == "shared store: 31.82 wavefronts a request, 1.00 without bank conflicts"
    now, best = line["picture"]
    assert (now["label"], now["columns"], best["label"]) == ("now: 28 wavefronts", "banks", "at best: 1 wavefront")
    assert now["path"] == "".join(f"M0 {row * 6}h5v5h-5z" for row in range(28))  # all in one bank


def test_rows_of_a_listing() -> None:
    """Numbers, code and costs, wasteful ones first; a gap and another file are rows of their own."""
    text = ">>    4  a = b;\n         ^ load: 1\n>>       ^ store: 8\n        ...\nother.cuh:\n      4  c;"
    costs = [Cost(file=0, line=4, unit="sectors", amount=3), Cost(file=1, line=4, unit="sectors", amount=1)]
    rows = list(transactions.lines(Lines(key="k", counter="c", launch="l", text=text, accesses=costs)))
    assert [(row["number"], row["code"], row["costs"], row["share"], row["is_costly"]) for row in rows] == [
        ("4", "a = b;", ["store: 8", "load: 1"], 0.75, True),
        ("", "...", [], 0.0, False),
        ("", "other.cuh:", [], 0.0, False),
        ("4", "c;", [], 0.25, False),
    ]


def test_stored_lines_are_what_the_counter_says(tmp_path: Path) -> None:
    """Counted anew they are the same, of each source that a run counted; counted once, nothing is added."""
    counted = list(source_lines.missing(tmp_path))
    stored = source_lines.read(ROOT / "results")
    texts = {line["key"]: line["text"] for line in counted}
    known = texts.keys() & stored.keys()
    assert 2 * len(known) > len(texts)
    assert {key: texts[key] for key in known} == {key: stored[key].text for key in known}
    (tmp_path / record.LINES_FILE).write_text("".join(f"{json.dumps(line)}\n" for line in counted[1:]))
    assert list(source_lines.missing(tmp_path)) == counted[:1]


#: Counters and texts of one key, by machines, where today's counter is "new" -> the text that is read.
READ = {
    "an older one of a later machine": ({"a": [("new", "right")], "b": [("old", "wrong")]}, "right"),
    "an older one behind it": ({"a": [("new", "right"), ("old", "wrong")]}, "right"),
    "a later one that says otherwise": ({"a": [("new", "right"), ("new", "wrong")], "b": [("new", "wrong")]}, "right"),
    "none of today": ({"a": [("old", "wrong"), ("older", "right"), ("older", "wrong")]}, "right"),
}


@pytest.mark.parametrize(("files", "expected"), READ.values(), ids=READ)
def test_lines_of_todays_counter_are_read(
    files: dict[str, list[tuple[str, str]]], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever machine has them; of one counter the first, and without any of today's the one that came last."""
    monkeypatch.setattr(fingerprint, "VERSION", "new")
    for machine, entries in files.items():
        lines = [{"key": "k", "counter": counter, "launch": "l", "text": text} for counter, text in entries]
        (tmp_path / machine).mkdir()
        folders.append(tmp_path / machine / record.LINES_FILE, *lines)
    assert source_lines.read(tmp_path)["k"].text == expected


def test_nothing_is_compiled_to_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no run has counted is said to be so; no kernel is compiled or executed to find out."""
    monkeypatch.setattr(nvcc_call, "directly", pytest.fail)
    monkeypatch.setattr(counting, "count", pytest.fail)
    for source in transactions.sources(tmp_path):
        assert source["lines"] == []
        assert source["problem"] == "no stored run has counted this source; run: kernelwatch run"


def test_commits_that_git_does_not_know(tmp_path: Path) -> None:
    """A shallow clone lacks most measured commits: they have pages without author and files."""
    root = begin(tmp_path)
    stored.write(root, {**stored.pair(1.0, 2.0, stored.COUNT), commit(root): {stored.COUNT: {"one": 2.0}}})
    config = Config.load(str(root / "asv.conf.json"))
    config.repo, config.results_dir, config.html_dir = str(root), str(root / "results"), str(tmp_path / "html")
    folder = publisher.write(config, get_repo(config), Benchmarks.load(config))
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("commit/*.html")]
    assert sorted(" by n," in text for text in texts) == [False, False, True]
