"""The listing as one page of HTML, which needs nothing else: lines are coloured by what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape

from .costs import LEGEND, costs, pictures, place_of
from .counters import LaunchCounters
from .listing import Lines, cost, table, text_of

_STYLE = """
:root { color-scheme: light dark; --on: #c5341f; --best: #2b7d4f; --off: #8883; --quiet: light-dark(#555, #aaa); }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5em auto; max-width: 68em; padding: 0 1em; }
h1 { font-size: 1.3em; overflow-wrap: anywhere; } h2 { font-size: 1.1em; margin: 1.6em 0 .3em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; } td { padding: 0 .6em; }
td { vertical-align: top; } .code, pre, code { font: 13px/1.4 monospace; }
.code { white-space: pre-wrap; width: 100%; } td .cost { color: inherit; }
.n, .cost, figcaption, .quiet { color: var(--quiet); font-size: 12px; } .n { text-align: right; white-space: nowrap; }
.line { border-left: 4px solid var(--on); margin: .6em 0; padding-left: .8em; }
.line.well { border-color: var(--best); } .line code { overflow-wrap: anywhere; }
.picture { display: flex; flex-wrap: wrap; gap: .8em 2em; margin: .4em 0; }
figure { margin: 0; } svg { display: block; margin-top: .2em; } .off { fill: var(--off); } .on { fill: var(--on); }
figure + figure .on { fill: var(--best); }
"""


def _costs(counters: LaunchCounters, words: Sequence[str], lines_of: Lines) -> str:
    """What costs most, array by array, with pictures."""
    found = costs(counters, words)
    drawn = pictures(found)
    parts, array = [], ("", "")
    for n, one in enumerate(found):
        if (one.unit, one.array) != array:
            array = one.unit, one.array
            parts.append(f"<h2>{escape(one.array)}: {one.of_array / one.of_all:.0%} of {one.of_all} {one.unit}</h2>")
        source = one.worst.source
        text = escape(text_of(source.file, source.line, lines_of))
        head = f"<b>{one.amount / one.of_all:.0%}</b> {escape(place_of(one))} <code>{text}</code>"
        below = f'<div class="cost">{escape(one.words)}</div>{drawn[n].svg() if n in drawn else ""}'
        parts.append(f'<div class="line{"" if one.excess else " well"}">{head}{below}</div>')
    return "".join(parts) + (f'<p class="quiet">{LEGEND}</p>' if drawn else "")


def page(title: str, counters: LaunchCounters, words: Sequence[str], lines_of: Lines) -> str:
    """What costs most, the totals, and each file with its lines; the arrays have the names of ``words``.

    A line is the redder, the greater its part of the sectors and wavefronts of the launch. Beside it stands what it
    moves, and how much of it is more than needed.
    """
    files: defaultdict[str, dict[int, tuple[int, int, list[str]]]] = defaultdict(dict)
    for (file, line), accesses in counters.by_line().items():
        moved = sum(each.sectors + each.wavefronts for each in accesses)
        excess = sum(max(each.sectors - each.ideal_sectors, 0) + each.bank_conflicts for each in accesses)
        files[file or ""][line or 0] = moved, excess, [cost(each) for each in accesses]
    most = max((moved for lines in files.values() for moved, _, _ in lines.values()), default=0) or 1
    total = sum(moved for lines in files.values() for moved, _, _ in lines.values()) or 1
    parts = []
    for name, lines in sorted(files.items()):
        texts = lines_of(name) or []
        rows = []
        for number in range(1, len(texts) + 1) if texts else sorted(lines):
            moved, excess, said = lines.get(number, (0, 0, []))
            shade = f' style="background:rgba(220,50,30,{moved / most * 0.6:.2f})"' if moved else ""
            share = [f"{moved / total:.0%}, {excess / moved:.0%} of it too much"] if moved else []
            text = escape(texts[number - 1] if texts else "")
            below = "".join(f'<div class="cost">{escape(each)}</div>' for each in dict.fromkeys([*share, *said]))
            rows.append(f'<tr{shade}><td class="n">{number}<td class="code">{text}{below}')
        parts.append(f'<h2>{escape(name)}</h2><div class="scroll"><table>{"".join(rows)}</table></div>')
    found = "".join(f"<li>{escape(str(each))}" for each in counters.findings)
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"{meta}<title>{escape(title)}</title><style>{_STYLE}</style>"
    totals = f'<h2>Totals</h2><pre class="scroll">{escape(table(counters))}</pre><ul>{found}</ul>'
    body = f"<h1>{escape(title)}</h1>{_costs(counters, words, lines_of)}{totals}{''.join(parts)}"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'
