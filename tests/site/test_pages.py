"""Pages of a made-up repository: golden texts, loaded files, and a test in Chromium."""

import base64
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gpu_kernels import KERNELS
from kernelwatch.show.site import pages, publisher, words
from tests import stored
from tests.commits import begin, commit
from tests.golden import golden
from tests.site import browser, story

VENDOR = Path(pages.__file__).parent / "vendor"
MANIFEST = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))

#: Elements that begin a line, attributes in golden texts, and attributes that load a file.
BLOCKS = ("h1", "h2", "p", "tr", "li", "caption", "figcaption", "summary", "div", "svg", "details")
SHOWN = ("aria-label", "title", "points", "style", "d", "open", "data-groups")
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """Publish the site; yield its folder, and the commits' names in golden texts by hash."""
    with story.publish_site(tmp_path_factory.mktemp("site")) as folder_and_names:
        yield folder_and_names


class _Page(HTMLParser):
    """A page's text (a line per block, cells separated by |, targets of links), files, attributes and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.scripts, self._stack = "", "", [""]
        self.loaded: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        shown = self.text.partition("\x02")[2].partition("What the terms mean")[0]
        self.text = re.sub(r"\s*\n\s*", "\n", shown).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add the begin of an element to the text, with the element's attributes."""
        attributes = dict(attrs)
        self.attributes += attrs
        self.loaded += [value or "" for name, value in attrs if LOADING.get(tag) == name]
        self.text += "\x02" if tag == "main" else "\n" if tag in BLOCKS else " | " if tag in ("td", "th") else ""
        self.text += "".join(f"({attributes[name] or name})" for name in SHOWN if name in attributes)
        if tag in ("a", "script"):
            self._stack.append(attributes.get("href") or tag)

    def handle_endtag(self, tag: str) -> None:
        """Add the target of a link to the text."""
        link = self._stack.pop() if tag in ("a", "script") else ""
        self.text += f"[{link}]" if tag == "a" else ""

    def handle_data(self, data: str) -> None:
        """Add a text, as one line, to the text or the scripts."""
        self.text += re.sub(r"\s+", " ", data)
        self.scripts += data.strip() if self._stack[-1] == "script" else ""


def _compare(name: str, texts: Mapping[str, str], names: Mapping[str, str]) -> None:
    text = "\n".join(f"== {page}\n{text}\n" for page, text in texts.items())
    for commit_hash, label in names.items():
        text = text.replace(commit_hash, label).replace(commit_hash[:8], label)
    shown, expected = golden(name, text)
    assert shown == expected


def test_pages_equal_golden_texts(site: tuple[Path, dict[str, str]]) -> None:
    folder, names = site
    addresses = [f"{described.name}.html" for described in pages.PAGES]
    addresses += [f"commit/{commit_hash}.html" for commit_hash in names]
    existing = [page for page in addresses if (folder / page).exists()]  # a commit without results has no page
    texts = {page: _Page((folder / page).read_text(encoding="utf-8")).text for page in existing}
    # The data of a commit is sorted by the commit's label in `names`: hashes have no stable order.
    paths = (str(path.relative_to(folder)) for path in folder.glob("data/**/*.js"))
    pieces = sorted(paths, key=lambda piece: (str(Path(piece).parent), names.get(Path(piece).stem, piece)))
    scripts = {piece: (folder / piece).read_text(encoding="utf-8") for piece in pieces}
    texts |= {piece: re.sub(r"\\(.)", r"\1", text[len("arrived('") : -len("');\n")]) for piece, text in scripts.items()}
    _compare("site-pages.txt", texts, names)


def test_commit_pages_explain_their_terms(site: tuple[Path, dict[str, str]]) -> None:
    commit_pages = [path.read_text(encoding="utf-8") for path in site[0].glob("commit/*.html")]
    assert commit_pages
    for page in commit_pages:
        assert "-O3 stands for -Xptxas -O3" in page
        assert "PTX instructions that a thread executes" in page


def test_nothing_comes_from_another_host(site: tuple[Path, dict[str, str]]) -> None:
    """No script is inline, which the pages' policy forbids."""
    for path in sorted(site[0].glob("**/*.html")):
        page = _Page(path.read_text(encoding="utf-8"))
        assert page.loaded
        files = [path.parent / place.partition("?")[0] for place in {*page.loaded} - {"data:,"}]
        assert all(file.is_file() for file in files), page.loaded
        assert page.scripts == ""
        # A script fills the element: without it, the script raises.
        assert any("scripts/" in place for place in page.loaded) == (("id", "content") in page.attributes), path
        names = {name for name, _ in page.attributes}
        assert not {name for name in names if name.startswith("on") or name in ("integrity", "crossorigin")}
        assert ("content", pages.POLICY) in page.attributes
        assert "asv’s pages" not in page.text
    assert "script-src 'self';" in pages.POLICY
    for path in site[0].rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", path.read_text(encoding="utf-8")), path


def test_vendored_files_are_those_of_the_manifest() -> None:
    """Each has the hash and the licence in the manifest. The folder has no other file."""
    files = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()}
    bundled = [row for row in MANIFEST if row["file"]]
    assert files == {"manifest.json", *(row["licence_file"] for row in MANIFEST), *(row["file"] for row in bundled)}
    for row in bundled:
        assert hashlib.sha256((VENDOR / row["file"]).read_bytes()).hexdigest() == row["sha256"]


def test_policy_allows_the_style_of_charts() -> None:
    (source,) = (row["file"] for row in MANIFEST if row["file"])
    ((text, name),) = re.findall(r"`(:where\(\.\$\{(\w+)\}\) [^`]*)`", (VENDOR / source).read_text(encoding="utf-8"))
    written = text.replace(f"${{{name}}}", "plot")
    assert f"sha256-{base64.b64encode(hashlib.sha256(written.encode()).digest()).decode()}" == pages.PLOT_STYLE


def test_values_on_bars_have_contrast() -> None:
    """Text on bars has the colour of the paper. In both themes, the contrast is at least 4.5 (WCAG 2, AA)."""
    css = (Path(pages.__file__).parent / "static" / "project.css").read_text(encoding="utf-8")
    themes = re.findall(r":root \{(\s*--paper.*?)\}", css, flags=re.DOTALL)
    assert len(themes) == 2
    for theme in themes:
        colours = {name: _compute_luminance(digits) for name, digits in re.findall(r"--([\w-]+): #(\w+)", theme)}
        series = {name: luminance for name, luminance in colours.items() if name.startswith("series-")}
        assert len(series) == 8
        for name, luminance in series.items():
            low, high = sorted((luminance, colours["paper"]))
            assert (high + 0.05) / (low + 0.05) >= 4.5, name


def _compute_luminance(digits: str) -> float:
    """Return the relative luminance of a colour of three or six hexadecimal digits, as WCAG 2 defines it."""
    parts = [int(part * (3 - len(part)), 16) / 255 for part in re.findall("." * (len(digits) // 3), digits)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_code_of_the_site_names_nothing_of_this_suite() -> None:
    words = "|".join((*KERNELS, "transpose", "matrix", "rows x", "lecture", "float32", "int8", r"sm_\d", "make [bcs]"))
    folder = Path(pages.__file__).parent
    for path in (*folder.glob("*.py"), *folder.glob("static/*"), *folder.glob("templates/*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            code = line.partition(" // ")[0].lstrip()
            assert code.startswith(("#", "/")) or not re.search(words, code), f"{path.name}: {line}"


def test_commits_unknown_to_git_have_pages(tmp_path: Path) -> None:
    """Such pages have no author. Publishing again writes no file."""
    root = begin(tmp_path, "an author")
    unknown = stored.pair(1.0, 2.0, stored.COUNT)
    suite: stored.Suite = {**unknown, commit(root): {stored.COUNT: {"one": 2.0}}}
    for machine in ("gpu", "\N{NO-BREAK SPACE}gpu"):  # only line breaks separate names
        stored.write(root, suite, machine)
    config = story.load_config(root, tmp_path / "html")
    folder = publisher.write_site(config, root)
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("commit/*.html")]
    assert sorted(" by an author," in text for text in texts) == [False, False, True]
    assert 'data-machines="gpu\n\N{NO-BREAK SPACE}gpu"' in (folder / "commit.html").read_text(encoding="utf-8")
    times = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    publisher.write_site(config, root)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == times


def test_feed_has_each_worse_commit(site: tuple[Path, dict[str, str]]) -> None:
    """Entries link to the pages of published commits."""
    folder, names = site
    feed = ElementTree.parse(folder / "regressions.xml").getroot()
    links = [link.attrib["href"] for link in feed.iterfind("{*}entry/{*}link")]
    assert [names[Path(link).stem] for link in links] == ["commit6", "commit5", "commit1"], (
        "newest first: `flip` and `turn` are slower, `blur` fails, `blur` is slower"
    )
    assert all((folder / link).is_file() for link in links)
    identifiers = [entry.findtext("{*}id") for entry in feed.iterfind("{*}entry")]
    assert len({*identifiers}) == len(links)
    assert all(str(name).startswith("urn:uuid:") for name in identifiers)
    assert words.derive_uuid("imaging", links[0]) != words.derive_uuid("a fork", links[0])
    # The title of BREAKS, with a space for its control character.
    assert "Blur  breaks" in [(content or "").partition("\n")[0] for content in feed.itertext()]


@pytest.mark.browser
def test_bundle_is_reproducible(tmp_path: Path) -> None:
    subprocess.run(["node", "bundle.js", str(tmp_path / "plot.js")], cwd=browser.HERE, check=True, timeout=100)
    (row,) = (row for row in MANIFEST if row["file"])
    assert hashlib.sha256((tmp_path / "plot.js").read_bytes()).hexdigest() == row["sha256"]


@pytest.mark.browser
def test_pages_work_in_a_browser(site: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    folder, names = site
    charts, facts = tmp_path / "charts.json", {"commits": list(names), "hostile": story.HOSTILE, "kernel": "blur"}
    environment = {"SITE": str(folder), "CHROMIUM": str(browser.CHROMIUM), "KNOWN": json.dumps(facts)}
    process = subprocess.run(
        ["node", "--test-reporter=spec", "pages.test.js"], cwd=browser.HERE, capture_output=True, text=True,
        env={**os.environ, **environment, "CHARTS": str(charts)}, timeout=300,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout + process.stderr
    _compare("site-charts.txt", json.loads(charts.read_text(encoding="utf-8")), names)
