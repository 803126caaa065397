"""The graph of `#include`s between the files of a repository."""

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

#: Pattern of includes that may be files of the repository; `<name.h>` without a folder is a system header.
_INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"\n]+)"|<([^>\n]+/[^>\n]+)>)', re.MULTILINE)


class IncludedFiles(NamedTuple):
    """A file and all files that it includes, directly or not; and the folders to pass to nvcc with -I."""

    files: list[str]
    folders: tuple[str, ...]


class Inclusions:
    """The include graph of some files.

    Parameters
    ----------
    files : mapping of str to str
        Name of a file, relative to the repository -> its text.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._by_name = defaultdict[str, list[str]](list)
        for file in files:
            self._by_name[PurePosixPath(file).name].append(file)

    def list_included(self, file: str) -> IncludedFiles:
        """Return a file with all that it includes. Among several files of one name, the nearest is included."""
        folders, included = dict[str, None](), [file]
        for includer in included:
            for place, folder in self._direct[includer].items():
                if folder:
                    folders[folder] = None
                if place not in included:
                    included.append(place)
        return IncludedFiles(included, tuple(folders))

    def list_includers(self, header: str) -> list[str]:
        """Return the sources that include a header, those in the header's folder first."""
        sources = [file for file in self._files if file.endswith((".cu", ".cpp", ".cc", ".cxx"))]
        including = [file for file in sources if file != header and header in self.list_included(file).files]
        return sorted(including, key=lambda file: PurePosixPath(file).parent != PurePosixPath(header).parent)

    @cached_property
    def _direct(self) -> dict[str, dict[str, str]]:
        """File -> included file -> the folder of the include that nvcc needs with -I; empty if nvcc needs none."""
        return {file: self._find_direct(file) for file in self._files}

    def _find_direct(self, file: str) -> dict[str, str]:
        direct = {}
        for name in map("".join, _INCLUDE.findall(self._files[file])):
            place, folder = os.path.normpath(PurePosixPath(file).parent / name), ""
            candidates = [
                candidate
                for candidate in self._by_name[PurePosixPath(name).name]
                if f"/{candidate}".endswith(f"/{name}")
            ]
            if place not in self._files and candidates:
                place = max(candidates, key=lambda candidate: len(os.path.commonpath([file, candidate])))
                folder = place.removesuffix(name).rstrip("/") or "."
            if place in self._files:
                direct[place] = folder
        return direct
