"""What the site tells of one machine, kept by all that it is made from: a run on one leaves the others as they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelwatch.project import ROOT
from kernelwatch.show.site import commits, data, kept
from kernelwatch.show.site.changes import changes
from kernelwatch.show.site.tiles import tiles
from kernelwatch.store.graph import Graph
from kernelwatch.store.results import History

_COMMIT = re.compile(rb'"commit_hash": ?"([0-9a-f]{40})"')


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

    @cached_property
    def history(self) -> History:
        """Its stored results, read when they are asked for."""
        return History(self.name, config=self._config)

    def commits(self) -> set[str]:
        """Return the hashes of the commits that it measured, with any compiler."""
        texts = (path.read_bytes() for path in self._folder.glob("*-*.json"))
        return {match[1].decode() for text in texts if (match := _COMMIT.search(text))}

    def told(self, repo: Any, known: Collection[str], ids: Mapping[str, int]) -> dict[str, Any]:
        """Return its pieces, changes, tiles, and commits with their dates; as it was kept if nothing changed.

        Parameters
        ----------
        repo : asv.plugins.git.Git
            The repository.
        known : collection of str
            The measured commits that it has.
        ids : mapping of str to int
            The number of each benchmark.
        """
        own = self.commits()
        graph = Graph(ROOT, dict.fromkeys(own, 0), self._config.branches)
        order = [[each, [*graph.ancestors(each)], graph.branches[each]] for each in graph.commits]
        reviews = kept.Kept(self._folder, known, commits.head(repo))
        # A line may say something of a machine and name no commit.
        files = {path.name: kept.of_file(path) for path in sorted(self._folder.glob("*.json*"))}
        made: dict[str, Any] = reviews.of(
            sorted(own), [files, ids, order, commits.measured()], lambda: self._told(repo, reviews, ids)
        )
        return made

    def _told(self, repo: Any, reviews: kept.Kept, ids: Mapping[str, int]) -> dict[str, Any]:
        history = self.history
        return {
            **data.pieces(history, ids),
            "dates": history.dates(),
            "branches": history.graph.branches,
            "commits": history.commits(),
            "tiles": tiles(history),
            "changes": list(changes(history, repo, reviews)),
        }
