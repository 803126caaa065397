"""A review as text: for a terminal, or in a Markdown fence for a comment or a job's summary."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from kernelwatch.review.commit_review import Review
from kernelwatch.review.conclusion import iter_reasons_for_undecided
from kernelwatch.review.groups import ChangeGroup, group_rows, select_changed
from kernelwatch.review.pairing import ONLY_BASE, ONLY_HEAD, REGENERATED, SKIPPED, WITHOUT_VALUE
from kernelwatch.review.rows import Row, UnpairedConfiguration
from kernelwatch.review.verdict import RISES, Verdict, format_percent
from kernelwatch.show.single_changes import iter_facts, iter_largest, iter_trades, iter_undecided, note_unverified
from kernelwatch.show.terminal import format_table, wrap_line
from kernelwatch.show.text import PASSING_OPTION, SHORTENED_FLAGS, name_conclusion, name_verdict, shorten_flags
from kernelwatch.suite.benchmark_names import EXACT, TIMED
from ptxcount.cli.options import plain
from ptxcount.util.grammar import choose_form, count_noun

#: Headers of the table by kernel and flags.
HEADERS = ["kernel", "flags", "time", "why (compiled, counted)", "configurations"]

#: Maximum number of characters of a comment on GitHub.
COMMENT_LIMIT = 65_536

#: Maximum number of listed kernels or failures. Maximum length of a reason, in characters.
_MAX_NAMES, _MAX_REASON = 8, 1000

#: Text that replaces lines beyond the size limit of a comment.
_LEFT_OUT = "Lines left out, because a comment has no more room: {}.\n"

#: Order of the verdicts in a line of counts, after the worse ones.
_ORDER = (Verdict.FASTER, Verdict.SAME, Verdict.UNDECIDED, Verdict.ACKNOWLEDGED)


def render_review(review: Review, at_least: float = 0.0, *, list_all: bool = False) -> str:
    """Return the verdict, the largest changes, and the changes by kernel and flags, in lines of at most 100 columns.

    Parameters
    ----------
    review : Review
        The two commits.
    at_least : float
        The smallest relative change to list.
    list_all : bool
        Also list each changed configuration, all evidence, and why configurations are not compared.
    """
    return "".join(
        f"{line}\n" for paragraph in _iter_lines(review, at_least, list_all) for line in wrap_line(paragraph)
    )


def fence_text(text: str, limit: int = COMMENT_LIMIT) -> str:
    """Return a text as a Markdown code block of at most `limit` characters.

    If lines are cut, the last line says how many.
    """
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    room = limit - 2 * len(fence) - len(_LEFT_OUT) - 12  # 12 characters for the number of lines and line breaks
    shown = text if len(text) <= room else text[:room].rpartition("\n")[0] + "\n"
    omitted = text.count("\n", len(shown))
    remark = _LEFT_OUT.format(omitted) if omitted else ""
    return "\n".join([fence, shown + remark + fence, ""])


def _iter_lines(review: Review, at_least: float, list_all: bool) -> Iterator[str]:
    rows, differing, listed = review.rows, select_changed(review.rows), select_changed(review.rows, at_least)
    yield _format_verdict(review)
    yield from (f"{failure.verdict.value}: {plain(failure, _MAX_REASON)}" for failure in review.failures[:_MAX_NAMES])
    if further := review.failures[_MAX_NAMES:]:
        yield f"{count_noun(len(further), 'more failure')}; --format json has all"
    yield "; ".join(_iter_counts(review)) or "no configuration has a value in both commits"
    yield from (f"Largest: {line}" for line in iter_largest(listed))
    yield from (f"Trade: {line}" for line in iter_trades(rows))
    accepted = Counter(row.judgement.reason for row in rows if row.judgement.verdict is Verdict.ACKNOWLEDGED)
    for reason, count in accepted.most_common():
        yield f"Acknowledged: {count_noun(count, 'configuration')}: {plain(reason)}"
    if groups := group_rows(rows, review.arch, at_least):
        yield from format_table(HEADERS, [_format_cells(group) for group in groups], list_all=list_all)
    small = len(differing) - len(listed)
    same = len(rows) - len(differing)
    unlisted = [
        f"{count_noun(same, 'number')} that {choose_form(same, 'is', 'are')} the same" if same else "",
        f"{count_noun(small, 'number')} that changed by less than {100 * at_least:g} % (--at-least)" if small else "",
    ]
    if any(unlisted):
        yield f"Not listed: {'; '.join(filter(None, unlisted))}."
    yield from _iter_unpaired(review, list_all)
    yield from (f"Note: {plain(note)}" for note in _iter_notes(review, differing, groups))
    if list_all:
        for row in differing:
            yield f"{name_verdict(row.judgement.verdict, row.kind):9}{plain(row.name)}"
            yield f"{'':9}{'; '.join(iter_facts(row, review.peak))}"
    yield " ".join(_iter_explanations(review, differing))


def _iter_notes(review: Review, differing: Sequence[Row], groups: Sequence[ChangeGroup]) -> Iterator[str]:
    yield from review.notes
    if review.rows and not _is_timed(review):
        yield "nothing was timed; only counted and compiled numbers can decide"
    if any(group.elsewhere for group in groups):
        archs = sorted({row.arch for row in review.rows if row.arch}, key=lambda arch: (len(arch), arch))
        own = f"only those of {review.arch}, this machine's GPU, can explain its times"
        yield f"compiled numbers are of {', '.join(archs)}; {own}"
    if unverified := sorted({plain(row.kernel) for row in differing if not row.verified}):
        yield f"not verified, because they have no reference=: {_join_kernels(unverified)}"
    if review.conclusion is Verdict.UNDECIDED:
        yield from (f"no verdict: {doubt}" for doubt in iter_reasons_for_undecided(review.rows))
    yield from iter_undecided(review)


def _iter_explanations(review: Review, differing: Sequence[Row]) -> Iterator[str]:
    if _is_timed(review):
        yield f"Time: geometric mean of head / base over sizes and dtypes; the same up to {review.thresholds}."
    yield "Counted and compiled numbers are the same only if equal. Lower is better."
    if any(PASSING_OPTION in row.flags for row in differing):
        yield SHORTENED_FLAGS
    if any(row.metric == "instructions" for row in differing):
        yield "Instructions are PTX instructions per thread."


def _is_timed(review: Review) -> bool:
    return any(row.kind == TIMED for row in review.rows)


def _iter_unpaired(review: Review, list_all: bool) -> Iterator[str]:
    by_label = _group_unpaired(review.unpaired[ONLY_BASE]) | {"new in head": review.unpaired[ONLY_HEAD]}
    for label, unpaired in by_label.items():
        if not unpaired:
            continue
        texts = {plain(configuration.reason.removeprefix(f"{label}: "), _MAX_REASON) for configuration in unpaired}
        hint = f"; {texts.pop()}" if label in (SKIPPED, REGENERATED) and len(texts) == 1 else "; --all says why"
        are = f"{count_noun(len(unpaired), 'configuration')} {choose_form(len(unpaired), 'is', 'are')}"
        yield f"{are} {label}: {_list_kernels(unpaired)}{'' if list_all else hint}"
        if list_all:
            reasons = Counter((configuration.benchmark, configuration.reason) for configuration in unpaired)
            for (benchmark, reason), count in reasons.most_common():
                yield f"  {count} of {plain(benchmark)}: {plain(reason)}"


def render_headline(review: Review) -> str:
    """Return the verdict, and the number of configurations per verdict if any changed."""
    paragraphs = [_format_verdict(review)]
    if select_changed(review.rows):
        paragraphs.append("; ".join(_iter_counts(review)))
    return "\n".join(line for paragraph in paragraphs for line in wrap_line(paragraph))


def _format_verdict(review: Review) -> str:
    distance = f" ({review.distance})" if review.distance else ""
    verdict = name_conclusion(review.conclusion, is_timed=_is_timed(review))
    return f"{verdict}  {_format_sides(review)}{distance}, {plain(review.where)}"


def _format_sides(review: Review) -> str:
    """Format base and head as the user typed them, with the hash after a name such as that of a branch."""
    if review.is_of_compilers:
        releases = " -> ".join(f"nvcc of CUDA {side.label}" for side in review.base_and_head)
        return f"{releases} at {review.head.commit[:8]}"
    return " -> ".join(
        side.label[:8] if side.commit.startswith(side.label or "-") else f"{plain(side.label)} ({side.commit[:8]})"
        for side in review.base_and_head
    )


def _iter_counts(review: Review) -> Iterator[str]:
    """Yield the numbers of configurations by verdict; for two compilers, also the number of different cubins."""
    for noun, kinds in (("time", (TIMED,)), ("counted and compiled number", EXACT)):
        counts = Counter(row.judgement.verdict for row in review.rows if row.kind in kinds)
        if total := counts.total():
            deciding, rising = counts[Verdict.SLOWER], sum(counts[verdict] for verdict in RISES)
            worse = name_verdict(Verdict.SLOWER, kinds[0]).lower()
            if deciding != rising:
                worse += f" ({deciding or 'none'} {choose_form(deciding or 1, 'decides', 'decide')})"
            others = {name_verdict(verdict, kinds[0]).lower(): counts[verdict] for verdict in _ORDER}
            yield f"{count_noun(total, noun)}: {_join_counts({worse: rising, **others})}"
    unchanged_by_cubin = {row.name.partition("(")[2]: row.code_unchanged for row in review.rows if row.arch}
    recorded = [unchanged for unchanged in unchanged_by_cubin.values() if unchanged is not None]
    if review.is_of_compilers and recorded:
        yield f"machine code differs in {recorded.count(False)} of {len(recorded)} cubins"


def _format_cells(group: ChangeGroup) -> list[str]:
    return [
        plain(group.kernel),
        shorten_flags(group.flags),
        "" if group.ratio is None else format_percent(group.ratio),
        plain(", ".join([*group.evidence, *note_unverified(*group.times, *group.numbers)])),
        format_counts(group),
    ]


def format_counts(group: ChangeGroup) -> str:
    """Count a group's times by verdict, or its numbers if it has no times; return a text such as "3 slower"."""
    names = ("slower", "faster", "undecided") if group.times else ("rose", "fell", "noted")
    counts = {name: group.counts[name] for name in (*names, "acknowledged") if group.counts[name]}
    if group.times and len(counts) == 1:
        ((name, count),) = counts.items()
        return f"{count} of {len(group.times)} {name}"
    return _join_counts(counts or {"same": group.counts["same"]})


def _join_counts(counts: dict[str, int]) -> str:
    """Return a text such as "3 slower, 1 faster", without zeros."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _list_kernels(unpaired: Sequence[UnpairedConfiguration]) -> str:
    counts = Counter(plain(configuration.kernel or configuration.benchmark) for configuration in unpaired).most_common()
    return _join_kernels([f"{name} ({count})" for name, count in counts])


def _group_unpaired(unpaired: Sequence[UnpairedConfiguration]) -> dict[str, list[UnpairedConfiguration]]:
    partial, gone = "not measured in head, because its run was partial", "gone from head"
    groups: dict[str, list[UnpairedConfiguration]] = {label: [] for label in (partial, SKIPPED, REGENERATED, gone)}
    for configuration in unpaired:
        label = configuration.reason.partition(": ")[0]
        if configuration.reason in ("not run in head", WITHOUT_VALUE):
            label = partial
        groups[label if label in groups else gone].append(configuration)
    return groups


def _join_kernels(kernels: Sequence[str]) -> str:
    omitted = len(kernels) - _MAX_NAMES
    return ", ".join(kernels[:_MAX_NAMES]) + (f" and {count_noun(omitted, 'more kernel')}" if omitted > 0 else "")
