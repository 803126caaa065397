"""``ptxcount compare``: what counts otherwise than in a revision's lock file, for the summary of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent

from ..cli.options import plain
from .counting import Counted
from .diagnostics import Diagnostic
from .pins import Change, Lock, changes

#: Changes that are listed at most.
_MOST = 200


def markdown(found: Sequence[Counted | Diagnostic], lock: Lock, release: str) -> str:
    """Markdown: a title, and in a block of code what rose most first, what is new, and what is gone or not counted."""
    counted = [each for each in found if isinstance(each, Counted)]
    failed = [f"{each.launch}: {each.message}" for each in found if isinstance(each, Diagnostic)]
    pinned = [(one, held) for one in counted if (held := lock.of(one)) is not None]
    changed = [(one, each) for one, held in pinned for each in changes(one.lines, held)]
    changed.sort(key=lambda row: row[1].before / max(row[1].now, 1))
    lists = {"not counted": failed, "new": sorted(one.launch.label for one in counted if lock.of(one) is None)}
    if not failed:  # else one that is missing may be one that failed
        lists["gone"] = lock.gone(counted)
    rose = sum(each.now > each.before for _, each in changed)
    title = [f"{rose} rose, {len(changed) - rose} fell"] * bool(changed)
    title += [f"{len(names)} {what}" for what, names in lists.items() if names]
    alike = len(pinned) - len({one.key for one, _ in changed})
    lines = [f"{alike} of {len(found)} launches count the same."]
    if lock.nvcc not in ("", release):
        lines.append(f"Before, nvcc {lock.nvcc} compiled them, and now {release or 'none'}.")
    lines += [f"{what}: {name}" for what, names in lists.items() for name in names]
    for one, each in changed[:_MOST]:
        lines += _rows(one, each)
    lines += [f"and {len(changed) - _MOST} more"] * (len(changed) > _MOST)
    return (
        f"### Memory transactions: {', '.join(title) or 'same'}\n\n{indent(chr(10).join(map(plain, lines)), ' ' * 4)}"
    )


def _rows(one: Counted, change: Change) -> Iterator[str]:
    part = f"{change.now / change.before - 1:+.0%}" if change.before else "new"
    yield f"{one.launch.label}: {change.file}:{change.line}: {change} ({part})"
    texts = [row["text"] for row in one.lines if (row["file"], row["line"]) == (change.file, change.line)]
    yield from (f"    {text.strip()}" for text in texts if text and not change.places)
