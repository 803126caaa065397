"""``ptxcount compare``: changes from a revision's lock file, for a job summary."""

from collections.abc import Iterator, Sequence
from textwrap import indent

from ..cli.options import plain
from ..util.grammar import count_noun
from .counting import LaunchCounts
from .diagnostics import Diagnostic
from .pins import Change, Lock, iter_changes

#: Maximum number of listed changes.
_MAX_LISTED = 200


def format_markdown(
    launch_counts: Sequence[LaunchCounts], failures: Sequence[Diagnostic], lock: Lock, release: str
) -> str:
    """Format the changes since a lock file as Markdown: a title, and a code block.

    The block lists launches that failed, are new or, if none failed, gone; then changed counts, by relative rise.
    ``release`` is the release of the current nvcc; empty without nvcc.
    """
    failed = [f"{failure.launch or failure.file}: {failure.message}" for failure in dict.fromkeys(failures)]
    same_count, new = 0, list[str]()
    changed: list[tuple[LaunchCounts, Change]] = []
    for counts in launch_counts:
        pinned_lines = lock.find_launch(counts)
        if pinned_lines is None:
            new.append(counts.launch.label)
            continue
        changes = [*iter_changes(counts.lines, pinned_lines)]
        changed += [(counts, change) for change in changes]
        if not changes:
            same_count += 1
    changed.sort(key=lambda changed_count: changed_count[1].before / max(changed_count[1].now, 1))
    lists = {"not counted": failed, "new": sorted(new)}
    if not failed:  # a missing launch may be a failed one
        lists["gone"] = lock.list_removed(launch_counts)
    title = [_describe_lines([change for _, change in changed])] if changed else []
    title += [f"{len(names)} {category}" for category, names in lists.items() if names]
    lines = [f"{same_count} of {len(launch_counts) + len(failures)} launches kept their counts."]
    if lock.nvcc not in ("", release):
        lines.append(f"The compiler was nvcc {lock.nvcc} before, and is {release or 'none'} now.")
    lines += [f"{category}: {name}" for category, names in lists.items() for name in names]
    for counts, change in changed[:_MAX_LISTED]:
        lines += _format_change(counts, change)
    if len(changed) > _MAX_LISTED:
        lines.append(f"and {len(changed) - _MAX_LISTED} more")
    body = indent("\n".join(map(plain, lines)), " " * 4)
    return f"### Memory transactions: {', '.join(title) or 'same'}\n\n{body}"


def _describe_lines(changes: Sequence[Change]) -> str:
    """Count the source lines with a count that rose, and those with one that fell: "2 lines rose, 1 fell"."""
    rising = {(change.file, change.line) for change in changes if change.now > change.before}
    falling = {(change.file, change.line) for change in changes if change.now < change.before}
    return f"{count_noun(len(rising), 'line')} rose, {len(falling)} fell"


def _format_change(counts: LaunchCounts, change: Change) -> Iterator[str]:
    """Yield a line on a changed count; then the text of the source line, unless lines were edited."""
    share = "new"
    if change.before:
        percentage = float(f"{100 * (change.now / change.before - 1):.2g}")
        share = f"{percentage:+,.15g} %"
    yield f"{counts.launch.label}: {change.file}:{change.line}: {change} ({share})"
    texts = [row["text"] for row in counts.lines if (row["file"], row["line"]) == (change.file, change.line)]
    yield from (f"    {text.strip()}" for text in texts if text and not change.places)
