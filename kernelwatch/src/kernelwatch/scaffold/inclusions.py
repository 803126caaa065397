"""The files of a repository that its files include, as far as their texts say it."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from pathlib import PurePosixPath

#: What may lie in the repository: `<name.h>` without a folder is the system's.
_INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"\n]+)"|<([^>\n]+/[^>\n]+)>)', re.MULTILINE)


class Inclusions:
    """What includes what.

    Parameters
    ----------
    files : mapping of str to str
        Names of files, relative to the repository, and their texts.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._named = defaultdict[str, list[str]](list)
        for file in files:
            self._named[PurePosixPath(file).name].append(file)

    def reached(self, file: str) -> tuple[list[str], tuple[str, ...]]:
        """Return all that a file includes, itself first, and the folders where it lies unless beside what includes it.

        Of several files with a name it is the nearest.
        """
        folders, reached = dict[str, None](), [file]
        for includer in reached:
            for place, folder in self._direct[includer].items():
                folders |= {folder: None} if folder else {}
                reached += [place] if place not in reached else []
        return reached, tuple(folders)

    def includers(self, header: str) -> list[str]:
        """Return the sources that include a header, those in its folder first."""
        sources = [file for file in self._files if file.endswith((".cu", ".cpp", ".cc", ".cxx"))]
        found = [file for file in sources if file != header and header in self.reached(file)[0]]
        return sorted(found, key=lambda file: PurePosixPath(file).parent != PurePosixPath(header).parent)

    @cached_property
    def _direct(self) -> dict[str, dict[str, str]]:
        """What each file includes, with the folder that must be named for it; empty if it is found without."""
        return {file: self._of(file) for file in self._files}

    def _of(self, file: str) -> dict[str, str]:
        direct = {}
        for name in map("".join, _INCLUDE.findall(self._files[file])):
            place, folder = os.path.normpath(PurePosixPath(file).parent / name), ""
            having = [other for other in self._named[PurePosixPath(name).name] if f"/{other}".endswith(f"/{name}")]
            if place not in self._files and having:
                place = max(having, key=lambda other: len(os.path.commonpath([file, other])))
                folder = place.removesuffix(name).rstrip("/") or "."
            if place in self._files:
                direct[place] = folder
        return direct
