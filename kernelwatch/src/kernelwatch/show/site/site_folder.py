"""The folder of the site, in which only changed files are written."""

import hashlib
from contextlib import suppress
from pathlib import Path


class SiteFolder:
    """The folder of a site. Files with equal bytes are not written again."""

    def __init__(self, path: Path) -> None:
        """Create the folder if it is missing, and remove links in it. Raises FileExistsError if it is a link."""
        if path.is_symlink():
            raise FileExistsError(f"{path} is a link, and files of its target would be removed; remove the link")
        self.path = path
        self._digest = hashlib.sha256()
        self._written: set[Path] = set()
        path.mkdir(parents=True, exist_ok=True)
        for entry in path.rglob("*"):
            if entry.is_symlink():  # writing through it would change a file elsewhere
                entry.unlink()

    @property
    def version(self) -> str:
        """A digest of all files written so far."""
        return self._digest.hexdigest()[:16]

    def write_text(self, place: str, text: str) -> None:
        """Write a text to the file `place`, relative to the folder."""
        self.write_bytes(place, text.encode())

    def write_bytes(self, place: str, content: bytes) -> None:
        """Write bytes to the file `place`, relative to the folder, unless the file has these bytes already."""
        path = self.path / place
        self._written.add(path)
        self._digest.update(f"{place} {len(content)} ".encode() + content)
        with suppress(OSError):
            if path.read_bytes() == content:
                return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def copy_folder(self, source: Path, place: str, pattern: str = "**/*") -> None:
        """Copy the files of `source` that match a pattern into the subfolder `place`."""
        for file in sorted(filter(Path.is_file, source.glob(pattern))):
            self.write_bytes(f"{place}/{file.relative_to(source).as_posix()}", file.read_bytes())

    def remove_others(self) -> None:
        """Remove the files that this object did not write, and empty folders."""
        for entry in sorted(self.path.rglob("*"), reverse=True):
            if entry.is_dir():
                with suppress(OSError):
                    entry.rmdir()
            elif entry not in self._written:
                entry.unlink()
