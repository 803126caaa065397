"""The listing as one page of HTML, which needs nothing else: lines are coloured by what they cost."""

from __future__ import annotations

from collections import defaultdict
from html import escape

from .counters import LaunchCounters
from .listing import Lines, cost, table

_STYLE = """
body { font: 14px sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; } td { padding: 0 .6em; vertical-align: top; }
.code { font: 13px monospace; white-space: pre-wrap; } .n { color: #666; text-align: right; }
.cost { color: #333; font-size: 12px; } .none { color: #666; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } .cost, .n, .none { color: #aaa; } }
"""


def page(title: str, counters: LaunchCounters, lines_of: Lines) -> str:
    """The totals, and each file with its lines.

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
    for name, costs in sorted(files.items()):
        texts = lines_of(name) or []
        rows = []
        for number in range(1, len(texts) + 1) if texts else sorted(costs):
            moved, excess, said = costs.get(number, (0, 0, []))
            shade = f' style="background:rgba(220,50,30,{moved / most * 0.6:.2f})"' if moved else ""
            share = f"{moved / total:.0%}, {excess / moved:.0%} of it too much" if moved else ""
            text = escape(texts[number - 1] if texts else "")
            below = "".join(f'<div class="cost">{escape(each)}</div>' for each in dict.fromkeys(said))
            rows.append(f'<tr{shade}><td class="n">{number}<td class="n">{share}<td class="code">{text}{below}')
        parts.append(f"<h2>{escape(name)}</h2><table>{''.join(rows)}</table>")
    found = "".join(f"<li>{escape(str(each))}" for each in counters.findings)
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    body = f"<h1>{escape(title)}</h1><pre>{escape(table(counters))}</pre><ul>{found}</ul>{''.join(parts)}"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'
