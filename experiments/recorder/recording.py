"""A recording of a program's launches: what `recorder.c` wrote, as arguments for ptxcount."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
_ENTRY = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)", re.MULTILINE)


@dataclass
class RecordedArray:
    """An allocation: its address on the GPU, its size, and its bytes before and after the launch."""

    address: int
    size: int
    before: Path
    after: Path

    def read_after(self) -> Bytes:
        """Read the bytes after the launch; there is no file if these are the bytes before it."""
        return np.fromfile(self.after if self.after.exists() else self.before, np.uint8)


@dataclass
class RecordedLaunch:
    """A launch in a recording."""

    index: int
    entry: str
    #: The file of the module's code; None if no module of that handle was recorded.
    code: Path | None
    grid: tuple[int, ...]
    block: tuple[int, ...]
    dynamic_shared: int
    cluster: tuple[int, ...] | None = None
    parameters: list[bytes] = field(default_factory=list)
    arrays: list[RecordedArray] = field(default_factory=list)
    #: The driver's result; 0 is success. None if the program ended before.
    result: int | None = None

    @cached_property
    def contents(self) -> list[Bytes]:
        """The bytes of each array before the launch, which a count modifies."""
        return [np.fromfile(array.before, np.uint8) for array in self.arrays]

    @property
    def is_complete(self) -> bool:
        """Tell if the launch succeeded, and its parameters and the bytes of its arrays were kept."""
        return self.result == 0 and bool(self.arrays) and all(array.before.exists() for array in self.arrays)

    def make_arguments(self) -> list[Any]:
        """Return an argument for each parameter: a struct if it holds pointers to arrays, else its bytes."""
        return [self._make_argument(content) for content in self.parameters]

    def _make_argument(self, content: bytes) -> Any:
        members: dict[str, Any] = {}
        for offset in range(0, len(content) - 7, 8):
            word = np.frombuffer(content, np.uint64, 1, offset)[0]
            members[f"word{offset}"] = self._find_array(int(word), word)
        if not any(isinstance(member, np.ndarray) for member in members.values()):
            return np.void(content)
        return next(iter(members.values())) if len(content) == 8 else members

    def _find_array(self, address: int, otherwise: Any) -> Any:
        for array, content in zip(self.arrays, self.contents, strict=True):
            if array.address <= address < array.address + array.size:
                return content[address - array.address :]
        return otherwise


def read_recording(folder: Path) -> list[RecordedLaunch]:
    """Read the launches of a recording, in their order."""
    launches: list[RecordedLaunch] = []
    modules: dict[str, Path] = {}
    linked: Path | None = None
    for line in (folder / "launches").read_text().splitlines():
        match line.split():
            case ["module", number, "0", _]:
                linked = folder / f"module-{number}-0.ptx"
            case ["module", number, handle, kind]:
                modules[handle] = linked or folder / f"module-{number}-0.{kind}"
                linked = None
            case ["launch", index, module, entry, *numbers]:
                shape = tuple(map(int, numbers))
                code = modules.get(module)
                launches.append(RecordedLaunch(int(index), entry, code, shape[:3], shape[3:6], shape[6]))
            case ["cluster", *numbers]:
                launches[-1].cluster = tuple(map(int, numbers))
            case ["parameter", _, content]:
                launches[-1].parameters.append(bytes.fromhex(content))
            case ["array", number, address, size, _]:
                stem = f"array-{launches[-1].index}-{number}"
                files = folder / f"{stem}.before", folder / f"{stem}.after"
                launches[-1].arrays.append(RecordedArray(int(address, 16), int(size), *files))
            case ["end", _, result]:
                launches[-1].result = int(result)
    return launches


class Library:
    """The PTX of a recording: of each module, or from a file that the program's compiler left in the folder."""

    def __init__(self, folder: Path) -> None:
        self._files = list(_list_files(folder, "*.ptx"))
        self._by_cubin = {
            cubin.read_bytes(): cubin.with_suffix(".ptx")
            for cubin in _list_files(folder, "*.cubin")
            if cubin.with_suffix(".ptx").exists()
        }

    @cached_property
    def _by_entry(self) -> dict[str, list[Path]]:
        files: dict[str, list[Path]] = {}
        for file in self._files:
            for entry in _ENTRY.findall(file.read_text(errors="replace")):
                files.setdefault(entry, []).append(file)
        return files

    def find_ptx(self, launch: RecordedLaunch) -> Path | None:
        """Find the file with a launch's PTX; None without one.

        It is the module itself, the file beside an equal cubin, or the newest file with such an entry. A file that is
        newer than the module is only taken if there is no other, as for Numba's listings at the end.
        """
        code, loaded = launch.code, float("inf")
        if code is not None and code.exists():
            if code.suffix == ".ptx":
                return code
            if beside := self._by_cubin.get(code.read_bytes()):
                return beside
            loaded = code.stat().st_mtime
        ages = {file: file.stat().st_mtime for file in self._by_entry.get(launch.entry, [])}
        earlier = [file for file, age in ages.items() if age <= loaded]
        return max(earlier or ages, key=lambda file: ages[file], default=None)


def _list_files(folder: Path, pattern: str) -> Iterator[Path]:
    return (file for file in folder.rglob(pattern) if file.is_file())
