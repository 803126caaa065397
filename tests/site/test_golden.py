"""The pages of one made-up repository, as text: all that they say of commits that change, fail, and measure a part."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.repo import get_repo

from kernelwatch import Kernel, home, inputs, outputs, settings, suite
from kernelwatch.project import ROOT
from kernelwatch.show.site import commits, publisher
from kernelwatch.store import git, record
from kernelwatch.suite import Suite
from kernelwatch.sweep import Sweep
from tests.commits import begin, commit
from tests.site import browser
from tests.stored import Outcome, samples, write

FLAGS = ("-Xptxas -O3",)
TIMED = {"w": ("64", "256"), "dtype": ("float32", "float64"), "flags": FLAGS}
COMPILED = {"kernel": ("blur", "sharpen"), "dtype": ("float32",), "flags": FLAGS, "arch": ("sm_80", "sm_90")}
TIME, COPIES = "time_kernel.Blur.time_back_to_back", "track_control.Blur.track_copy_ratio"
LOADED, STORED = (f"track_counted.Blur.track_sectors_{what}" for what in ("loaded", "stored"))
RATIO, SPILLED = "track_counted.Blur.track_load_sectors", "track_compiled.Compiled.track_spill_bytes"
AXES = {TIME: TIMED, COPIES: TIMED, LOADED: TIMED, STORED: TIMED, RATIO: TIMED, SPILLED: COMPILED}

SOURCE = (
    "// A blur.\n__global__ void blur(float* out, const float* image, int w)\n{\n    out[threadIdx.x] = image[0];\n}\n"
)
ACCEPTED = '[[regression]]\nkernel = "sharpen"\nnumber = "spill bytes"\nreason = "it keeps a row"\n'

#: On a branch of its own; measured without a GPU alone.
ASIDE, ALONE = "Blur aside", "Sharpen spills less"

#: Subject -> files; seconds of `blur`, sectors it loads, bytes `sharpen` spills. NaN fails; None: not measured.
STORY: dict[str, tuple[dict[str, str], tuple[float | None, float | None, float | None]]] = {
    "Blur and sharpen": ({"imaging/blur.cu": SOURCE, "README.md": "1"}, (4e-5, 64.0, 16.0)),
    "Blur <down> columns": ({"imaging/blur.cu": SOURCE.replace("[0]", "[w]")}, (8e-5, 128.0, 16.0)),
    ASIDE: ({"imaging/blur.cu": ""}, (9e-5, 256.0, 16.0)),
    "Words": ({"README.md": "2"}, (None, None, None)),
    "Sharpen keeps a row": ({"imaging/sharpen.cu": "//", "acknowledged.toml": ACCEPTED}, (None, 128.0, 24.0)),
    "Blur breaks": ({"imaging/blur.cu": SOURCE.replace("[0]", "[w * w]")}, (math.nan, 128.0, 24.0)),
    "Blur along rows": ({"imaging/blur.cu": SOURCE}, (3e-5, 64.0, 24.0)),
    ALONE: ({"imaging/sharpen.cu": "// less"}, (None, None, 20.0)),
}


@pytest.fixture(autouse=True)
def _suite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Two kernels, of which one has no reference, in a project that names no package."""
    arguments: Any = [outputs("out", "w"), inputs("image", "w"), "w"]
    kernels: Any = {
        "blur": Kernel("blur", arguments, file="imaging/blur.cu", block=32, over=("w",)),
        "sharpen": Kernel("sharpen", arguments, file="imaging/sharpen.cu", block=32, over=("w",), reference=abs),
    }
    sweep = Sweep("Blur", "Blur, DRAM", {**TIMED, "w": (64, 256)}, kernel="blur", note="Told of every figure.")
    compiled = Sweep("Compiled", "Compiled", COMPILED, module="track_compiled")
    made = Suite(kernels=lambda: kernels, timed=(sweep,), copy=None, counted=(sweep,), compiled=compiled)
    monkeypatch.setattr(suite, "current", lambda: made)
    monkeypatch.setattr(settings, "package", lambda: "")
    monkeypatch.setenv(home.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr("kernelwatch.store.results.ROOT", tmp_path / "repository")
    commits.measured.cache_clear()
    yield
    commits.measured.cache_clear()


def _made(root: Path) -> dict[str, str]:
    """Make the repository with results of two machines; what its commits are called here, by their hashes."""
    begin(root)
    stored: dict[str, dict[str, dict[str, dict[str, Outcome]]]] = {"no-gpu-x86_64": {}, "nvidia-h200": {}}
    names, codes, failed = {}, [], []
    for place, (subject, (files, (seconds, sectors, spilled))) in enumerate(STORY.items()):
        if subject == ASIDE:
            git.text(root, "checkout", "--quiet", "-b", "side")
        with mock.patch.dict(os.environ, GIT_COMMITTER_DATE=f"@{place} +0000"):  # it orders commits of two branches
            made = commit(root, files, subject)
        if subject == ASIDE:
            git.text(root, "checkout", "--quiet", "main")
        names[made] = f"commit{place}"
        without, on_gpu = (every.setdefault(made, {}) for every in stored.values())
        if seconds is not None:
            times = [seconds * factor for factor in (1, 2, 3, 4)]
            on_gpu[TIME] = _cases(*(None if math.isnan(each) else samples(each) for each in times))
            on_gpu[COPIES] = _cases(*(None if math.isnan(each) else each / 2e-5 for each in times))
            failed += [{"commit": made, "benchmark": TIME, "reason": "k <b>", "configurations": 4}] * math.isnan(
                seconds
            )
        if sectors is not None:
            without[LOADED], without[STORED] = _cases(*[sectors] * 4), _cases(*[8.0] * 4)
            without[RATIO] = _cases(*[sectors / 4] * 4)
        if spilled is not None:
            without[SPILLED] = _cases(0.0, 0.0, spilled, spilled)
        on_gpu |= without if subject != ALONE else {}
        known = TIMED["dtype"][: 1 if place == 0 else 2]  # of the first commit not all machine code is known
        code = "a" if subject == ASIDE else str(min(place, 1))
        cubins = {f"blur {dtype} {FLAGS[0]}": code * 64 for dtype in known}
        codes.append({"commit": made, "arch": "sm_90", "cubins": cubins})
    for machine, every in stored.items():
        write(root, {made: each for made, each in every.items() if each}, machine, axes=AXES)
    run = {"commits": list(names), "failed": failed, "arch": "sm_90", "peak_bytes_per_second": 1e9}
    first, second = ({**run, "before": {"uuid": f"GPU-{each * 8}-9", "l2_bytes": 1024}} for each in "12")
    # Two GPUs shared the newest commit, and one number of it was not measured again.
    *others, newest, _ = list(names)
    widths = ([f"{width}, {dtype}, {FLAGS[0]}" for dtype in TIMED["dtype"]] for width in TIMED["w"])
    runs = [{**first, "commits": others}]
    for one, texts in zip((first, second), widths, strict=True):
        runs.append({**one, "commits": [newest], "selected": {TIME: texts, COPIES: texts}})
    reused = {"time_kernel.Blur": {others[1]: [f"64, float32, {FLAGS[0]}"]}}
    reuse = {
        "started": "2026-11-22T00:00:00+00:00",
        "ended": "2026-11-22T00:05:00+00:00",
        "fingerprints": {},
        "commit": newest,
        "reused": reused,
    }
    folder = root / "results" / "nvidia-h200"
    for name, lines in ((record.FILE, runs), (record.CUBINS_FILE, codes), (record.FINGERPRINTS_FILE, [reuse])):
        (folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return names


def _cases(*outcomes: Outcome) -> dict[str, Outcome]:
    return dict(zip("abcd", outcomes, strict=True))


class _Text(HTMLParser):
    """A page as a person reads it: a line a block, cells apart, and where links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self._link = "", ""
        self.feed(page.partition("<main")[2].partition('<details class="terms">')[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, a cell or a link."""
        known = dict(attrs)
        self.text += "\n" if tag in ("h1", "h2", "p", "tr", "li", "caption", "figcaption", "summary", "div") else ""
        self.text += " | " if tag in ("td", "th") else ""
        self.text += f"({known['aria-label']})" if tag in ("svg", "a") and "aria-label" in known else ""
        self._link = known.get("href") or "" if tag == "a" else self._link

    def handle_endtag(self, tag: str) -> None:
        """Say where a link led."""
        self.text += f"[{self._link}]" if tag == "a" else ""

    def handle_data(self, data: str) -> None:
        """Take a text on one line."""
        self.text += re.sub(r"\s+", " ", data)


def _published(folder: Path) -> tuple[Path, dict[str, str]]:
    root = folder / "repository"
    names = _made(root)
    config = Config.load(str(root / "asv.conf.json"))
    config.repo, config.results_dir, config.html_dir = str(root), str(root / "results"), str(folder / "html")
    return publisher.write(config, get_repo(config), Benchmarks.load(config)), names


def _compare(name: str, texts: Mapping[str, str], names: Mapping[str, str]) -> None:
    """Compare texts with a file of tests/data; with WRITE_GOLDEN=1 it is written anew."""
    lines = {page: re.sub(r"\s*\n\s*", "\n", text).strip() for page, text in texts.items()}
    shown = "\n".join(f"== {page}\n{text}\n" for page, text in lines.items()).replace(str(ROOT), "ROOT")
    for commit_, called in names.items():
        shown = shown.replace(commit_, called).replace(commit_[:8], called)
    golden = ROOT / "tests" / "data" / name
    if os.environ.get("WRITE_GOLDEN"):
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


def test_pages(tmp_path: Path) -> None:
    """Overview, Commits, each commit, the sources, and the data of the charts."""
    site, names = _published(tmp_path)
    pages = [
        *(f"{name}.html" for name in ("index", "commit", "transactions")),
        *(f"commit/{made}.html" for made in names),
    ]
    pages = [page for page in pages if (site / page).exists()]  # of a commit that was not measured there is none
    texts = {page: _Text((site / page).read_text(encoding="utf-8")).text for page in pages}
    pieces = sorted(str(path.relative_to(site)) for path in site.glob("data/**/*.js"))
    texts |= {piece: "\n" + json.loads((site / piece).read_text(encoding="utf-8")[8:-3]) for piece in pieces}
    _compare("site-pages.txt", texts, names)


_ALL = "all%2C%20a%20line%20each"
ADDRESSES = [
    "bandwidth.html",
    "transactions.html",
    "history.html",
    "history.html#unit=%C2%B5s%2C%20lower%20is%20better&axis=from%200&p-dtype=float64",
    f"history.html#p-w={_ALL}&unit=%25%20of%20theoretical%20peak",
    f"history.html#machine=every%20machine&benchmark={LOADED}",
    f"history.html#benchmark={COPIES}&axis=logarithmic",
    f"history.html#machine=no-gpu-x86_64&benchmark={SPILLED}&p-arch=sm_80&p-kernel={_ALL}&axis=logarithmic",
]


@pytest.mark.browser
def test_charts(tmp_path: Path) -> None:
    """What a reader sees of them in Chromium."""
    site, names = _published(tmp_path)
    addresses = [*ADDRESSES, f"bandwidth.html#with={list(names)[1][:8]}"]
    environment = {
        **os.environ,
        "SITE": str(site),
        "CHROMIUM": str(browser.CHROMIUM),
        "ADDRESSES": json.dumps(addresses),
    }
    words = ["node", "golden.js"]
    done = subprocess.run(words, cwd=browser.HERE, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    _compare("site-charts.txt", json.loads(done.stdout), names)
