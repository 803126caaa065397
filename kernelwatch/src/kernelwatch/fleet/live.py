"""What a backfill says while it runs: a line a GPU, renewed in place on a terminal; and its figures at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from kernelwatch.fleet.task import TOPIC

if TYPE_CHECKING:  # help needs no Dask
    from distributed import Client

#: Letters of a line.
_WIDTH = 110


class Lines:
    """The last word of each worker, and what happens."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._is_terminal = sys.stdout.isatty()

    def hear(self, event: tuple[Any, dict[str, str]]) -> None:
        """Take what a worker says."""
        said = event[1]
        self._draw(lambda: self._said.update({_plain(said["worker"]): _plain(said["said"])}))

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._draw(lambda: print(*map(_plain, text.splitlines()), sep="\n", flush=True))

    def _draw(self, change: Callable[[], None]) -> None:
        if self._is_terminal and self._said:
            print(f"\x1b[{len(self._said)}F\x1b[J", end="")
        change()
        if self._is_terminal:
            for worker, said in self._said.items():
                print(f"{worker[:12]}  {said}"[:_WIDTH], flush=True)


def _plain(text: object) -> str:
    """What a worker says, without what would command a terminal."""
    return "".join(letter for letter in str(text) if letter.isprintable())


@contextmanager
def shown(client: Client) -> Iterator[Callable[[str], None]]:
    """Show what the workers say; yields what prints a line above theirs."""
    lines = Lines()
    client.subscribe_topic(TOPIC, lines.hear)
    try:
        yield lines.say
    finally:
        client.unsubscribe_topic(TOPIC)


def summary(done: Mapping[str, Sequence[tuple[int, float]]], timing: float, seconds: float) -> str:
    """Return the table of a backfill: what each worker did, and how many times all took in a second.

    Parameters
    ----------
    done : mapping of str to sequence of tuple
        Worker -> of each shard the times taken, and the seconds.
    timing : float
        Seconds in which times were taken by some worker.
    seconds : float
        All of them.
    """
    rows = []
    for worker, parts in sorted(done.items()):
        times = sum(each for each, _ in parts)
        busy = sum(spent for each, spent in parts if each)
        rows.append([worker, len(parts), sum(spent for _, spent in parts), times, times / busy if busy else None])
    head = ["worker", "shards", "seconds", "times", "times a second"]
    table = tabulate(rows, head, floatfmt=("", "", ".0f", "", ".2f"))
    total = sum(times for parts in done.values() for times, _ in parts)
    rate = f"{total} times in {timing:.0f} s, {total / timing:.2f} a second; " if total and timing else ""
    return f"{table}\n\n{rate}{seconds:.0f} s in all"
