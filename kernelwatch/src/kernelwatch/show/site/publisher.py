"""The project's pages in asv's `html_dir`, such as `html/watch/`. `kernelwatch site` and `asv publish` write them."""

import json
from pathlib import Path
from typing import Any

from kernelwatch.config.project_root import ROOT
from kernelwatch.show.site import annotated_sources, commits, configurations, data, measured, pages
from kernelwatch.show.site.overview import ShownMachine
from kernelwatch.show.site.site_folder import SiteFolder
from kernelwatch.store import asv_files, folders
from kernelwatch.store.results import History

#: The pages' folder in asv's `html_dir`.
FOLDER = "watch"

#: Folder in which `make docs` builds the documentation. If it exists, the site includes it.
DOCUMENTATION = "docs/_build/html"


def write_site(conf: Any, repository: Path) -> Path:
    """Write all pages, and return their folder.

    Parameters
    ----------
    conf : Configuration or asv.config.Config
        The configuration with the folders of results and of the site.
    repository : pathlib.Path
        The folder of the repository whose commits were measured.

    Raises
    ------
    FileExistsError
        The folder of the pages is a link.
    UnreadableError
        The list of benchmarks or a record is not readable.
    """
    folder = Path(conf.html_dir, FOLDER)
    site = SiteFolder(folder)
    site.copy_folder(Path(__file__).parent / "static", "static", "*.css")  # `pages` writes the scripts
    site.copy_folder(Path(__file__).parent / "vendor", "vendor", "*/*")
    documentation = ROOT / DOCUMENTATION
    if has_documentation := (documentation / "index.html").is_file():
        site.copy_folder(documentation, "docs")
    results = folders.results_folder(ROOT, conf)
    ids = data.number_benchmarks(
        name for name, benchmark in asv_files.load_benchmarks(results).items() if benchmark.type in ("time", "track")
    )
    histories = [History(name, ROOT, config=conf) for name in folders.list_machines(results)]
    loaded = [
        ShownMachine(history, measured.load_commits(history, [*ids], repository, ROOT), ROOT) for history in histories
    ]
    loaded.sort(key=lambda machine: -machine.time_count)  # machines with most times first
    machines = {machine.history.machine: machine for machine in loaded}
    benchmarks = {
        name: {"id": number, **configurations.describe_benchmark(loaded[0].history, name)}
        for name, number in ids.items()
        if loaded
    }
    data.write_data(site, benchmarks, machines)
    hashes = sorted({commit for history in histories for commit in history.list_commits()})
    pages.write_pages(
        site,
        machines,
        commits.describe_commits(repository, hashes),
        annotated_sources.list_sources(results),
        {name: describe_column(machine, repository) for name, machine in machines.items()},
        project=conf.project,
        commit_url=conf.show_commit_url if conf.show_commit_url.startswith("http") else None,
        has_asv_pages=Path(conf.html_dir, "index.html").is_file(),
        has_documentation=has_documentation,
    )
    site.remove_others()
    return folder


def describe_column(machine: ShownMachine, repository: Path) -> dict[str, Any]:
    """Return day, GPU and architecture of a machine's newest published measurement, and its distance from HEAD."""
    newest = machine.history.graph.line[-1:]
    if not newest:
        return {"day": "", "gpu": "", "distance": None}
    return {**machine.commits[newest[0]].run, "distance": commits.count_distance(repository, newest[0])}


def drop_empty_rows(html: Path) -> None:
    """Drop rows without a last value from the lists of asv's site; asv writes a row for each configuration."""
    for path in html.glob("graphs/**/summary.json"):
        rows = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps([row for row in rows if row["last_value"] is not None]), encoding="utf-8")
