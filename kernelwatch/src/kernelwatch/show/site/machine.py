"""What the site tells of one machine, kept by all that it is made from: a run on one leaves the others as they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelwatch.review import acknowledged
from kernelwatch.show.site import commits, configurations, data, kept
from kernelwatch.show.site.changes import changes
from kernelwatch.show.site.tiles import tiles
from kernelwatch.store import record
from kernelwatch.store.accept import suite
from kernelwatch.store.results import STORED, History

_COMMIT = re.compile(rb'"commit_hash": ?"([0-9a-f]{40})"')
_ARCH = re.compile(rb'"(?:arch|nvcc)": ?"[^"]*"')


class Machine:
    """A machine that has results.

    Parameters
    ----------
    name : str
        The machine's.
    config : object
        Asv's configuration.
    """

    def __init__(self, name: str, config: Any) -> None:
        self.name, self._config = name, config
        self._folder = Path(config.results_dir, name)
        self._files = {path.name: path.read_bytes() for path in sorted(self._folder.glob("*.json*"))}

    @cached_property
    def history(self) -> History:
        """Its stored results, read when they are asked for."""
        return History(self.name, config=self._config)

    def commits(self) -> set[str]:
        """Return the hashes of the commits that it measured, with any compiler."""
        return {match[1].decode() for text in self._files.values() if (match := _COMMIT.search(text))}

    def told(self, repo: Any, known: Collection[str], ids: Mapping[str, int]) -> dict[str, Any]:
        """Return its pieces, changes, tiles, commits with their dates, and counts; as it was kept if nothing changed.

        Parameters
        ----------
        repo : asv.plugins.git.Git
            The repository.
        known : collection of str
            The measured commits that it has.
        ids : mapping of str to int
            The number of each benchmark.
        """
        own = sorted(self.commits())
        order = [each for each in commits.order(repo) if each in own]
        parts: list[Any] = [
            self.name,
            kept.code(),
            ids,
            commits.measured(),
            order,
            [each for each in own if each in known],
        ]
        parts += [commits.head(repo) in own and commits.head(repo), *self._digests(own)]
        found: dict[str, Any] = kept.once(parts, lambda: self._told(repo, known, ids))
        return found

    def _digests(self, own: list[str]) -> Iterator[Any]:
        """What its files hold, and what others' do that counts here, too: machine code of its commits, compilers."""
        results = self._folder.parent
        stored = Path(getattr(self._config, STORED, results))
        yield {name: kept.digest(text) for name, text in self._files.items()}
        yield [kept.of_file(path) for path in (results / suite.FILE, acknowledged.beside(stored) / acknowledged.FILE)]
        for path in sorted(results.glob(f"*/{record.CUBINS_FILE}")):
            lines = path.read_bytes().splitlines()
            yield [kept.digest(line) for line in lines if any(each.encode() in line for each in own)]
        for path in sorted([*results.glob(f"*/{record.CUBINS_FILE}"), *results.glob(f"*/{record.FILE}")]):
            yield sorted({each.decode() for each in _ARCH.findall(path.read_bytes())})

    def _told(self, repo: Any, known: Collection[str], ids: Mapping[str, int]) -> dict[str, Any]:
        history = self.history
        return {
            **data.pieces(history, ids),
            "dates": history.dates(),
            "commits": history.commits(),
            "counted": configurations.counted(history),
            "tiles": tiles(history),
            "changes": list(changes(history, repo, known)),
        }
