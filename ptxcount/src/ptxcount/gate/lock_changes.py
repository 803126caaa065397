"""``ptxcount compare``: changes from a revision's lock file, for a job summary."""

from collections.abc import Iterator, Sequence
from textwrap import indent

from ..cli.options import plain
from .counting import LaunchCounts
from .diagnostics import Diagnostic
from .pins import Change, Lock, iter_changes

#: Maximum number of listed changes.
_MAX_LISTED = 200


def format_markdown(outcomes: Sequence[LaunchCounts | Diagnostic], lock: Lock, release: str) -> str:
    """Format Markdown: a title, and a code block with rises, largest first, new, removed and failed launches."""
    launch_counts = [outcome for outcome in outcomes if isinstance(outcome, LaunchCounts)]
    failures = dict.fromkeys(outcome for outcome in outcomes if isinstance(outcome, Diagnostic))
    failed = [f"{failure.launch or failure.file}: {failure.message}" for failure in failures]
    pinned = [
        (counts, pinned_lines) for counts in launch_counts if (pinned_lines := lock.find_launch(counts)) is not None
    ]
    changed = [
        (counts, change) for counts, pinned_lines in pinned for change in iter_changes(counts.lines, pinned_lines)
    ]
    changed.sort(key=lambda row: row[1].before / max(row[1].now, 1))
    lists = {
        "not counted": failed,
        "new": sorted(counts.launch.label for counts in launch_counts if lock.find_launch(counts) is None),
    }
    if not failed:  # a missing launch may be a failed one
        lists["gone"] = lock.list_removed(launch_counts)
    rise_count = sum(change.now > change.before for _, change in changed)
    title = [f"{rise_count} rose, {len(changed) - rise_count} fell"] * bool(changed)
    title += [f"{len(names)} {category}" for category, names in lists.items() if names]
    same_count = len(pinned) - len({counts.key for counts, _ in changed})
    lines = [f"{same_count} of {len(outcomes)} launches have equal counts."]
    if lock.nvcc not in ("", release):
        lines.append(f"They were compiled with nvcc {lock.nvcc} before, and with {release or 'none'} now.")
    lines += [f"{category}: {name}" for category, names in lists.items() for name in names]
    for counts, change in changed[:_MAX_LISTED]:
        lines += _format_change(counts, change)
    lines += [f"and {len(changed) - _MAX_LISTED} more"] * (len(changed) > _MAX_LISTED)
    body = indent("\n".join(map(plain, lines)), " " * 4)
    return f"### Memory transactions: {', '.join(title) or 'same'}\n\n{body}"


def _format_change(counts: LaunchCounts, change: Change) -> Iterator[str]:
    share = f"{change.now / change.before - 1:+.0%}" if change.before else "new"
    yield f"{counts.launch.label}: {change.file}:{change.line}: {change} ({share})"
    texts = [row["text"] for row in counts.lines if (row["file"], row["line"]) == (change.file, change.line)]
    yield from (f"    {text.strip()}" for text in texts if text and not change.places)
