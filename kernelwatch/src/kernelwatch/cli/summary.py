"""The summary at the end of `kernelwatch run`: the verdict, the skipped configurations, and where the results are."""

import shlex
from collections import Counter
from collections.abc import Iterator

from kernelwatch.config.project_root import CONFIG_FILE, ROOT
from kernelwatch.instrument.skip_reasons import NOT_SUPPORTED
from kernelwatch.review.commit_review import Review
from kernelwatch.show import report
from kernelwatch.store import asv_files, git
from kernelwatch.store.models import Document
from kernelwatch.store.results import History
from kernelwatch.workflow.load_review import review_selection
from kernelwatch.workflow.select_results import CannotCompareError, select_commits
from kernelwatch.workflow.steps import list_failing
from ptxcount.util.grammar import count_noun


def iter_lines(history: History, results: Document) -> Iterator[str]:
    """Yield the lines below the verdict: why supported configurations were skipped, and where the results are."""
    skipped: Counter[str] = Counter()
    for entry in history.find_last_run(results).get("skipped", []):
        if entry["commit"] == results.commit_hash and not entry["reason"].startswith(NOT_SUPPORTED):
            skipped[entry["reason"]] += entry["configurations"]
    yield from (f"Skipped: {count_noun(count, 'configuration')}: {reason}" for reason, count in skipped.most_common())
    if not skipped:
        yield "Skipped: nothing"
    website = f"{asv_files.load_configuration(ROOT / CONFIG_FILE).html_dir}/watch/index.html"
    yield f"Results: {website}; numbers in {history.folder.parent.name}/, stage them with git add"
    yield f"         tables: asv show {results.commit_hash[:8]} --machine {shlex.quote(history.machine)}"


def render_verdict(history: History, head: str) -> str:
    """Return the headline of the worst review against the nearest measured ancestor, or the reason for having none."""
    base = next(history.graph.iter_ancestors(head), None)
    if base is None:
        failed = ", ".join(list_failing(history, head))
        failures = f" FAILED: {failed}" if failed else ""
        advice = " This clone is shallow, so git knows few ancestors; run: git fetch --unshallow"
        remedy = advice if git.is_shallow(ROOT) else ""
        return f"Not compared: {history.machine} has no results of an ancestor.{remedy}{failures}"
    try:
        reviews = [review_selection(selection, ROOT) for selection in select_commits(base, head, history.machine, ROOT)]
        worst = min(reviews, key=Review.sort_key)
        outcome = report.render_headline(worst)
    except CannotCompareError as error:
        outcome = f"cannot compare: {error}"
    machine = shlex.quote(history.machine)
    return f"{outcome}\n         details: kernelwatch compare {base[:8]} {head[:8]} --machine {machine}"


def summarize(machine_name: str) -> tuple[str, int]:
    """Return the summary of HEAD on a machine, and the exit code: 1 without results, else 0, whatever the verdict.

    Raises FileNotFoundError if the folder of results does not have the machine.
    """
    head = git.text(ROOT, "rev-parse", "HEAD")
    history = History(machine_name, ROOT)
    results = history.find_commit(head)
    if results is None:
        return f"no results of {head[:8]} on {history.machine}; run: asv run --record-samples HEAD^!", 1
    return "\n".join([render_verdict(history, head), *iter_lines(history, results)]), 0
