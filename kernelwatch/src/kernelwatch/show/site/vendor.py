"""The scripts and styles of other projects, kept here and checked: `vendor/manifest.json`."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from asv.util import UserError

FOLDER = Path(__file__).parent / "vendor"


class SiteError(UserError):  # type: ignore[misc]
    """The site cannot be made as it should be; asv shows its text, and exits with 1."""


@dataclass(frozen=True)
class Vendored:
    """A file under the folder, `sha256` of its content, the npm package that it comes from, and its licence.

    `replaces` is the address that asv's page loads it from; None of a script that this project's pages add. `note` says
    what it is for, or how it differs from what that address serves. Without a `licence_file` the file itself names it.
    """

    package: str
    version: str
    licence: str
    licence_file: str | None
    file: str
    sha256: str
    replaces: str | None
    note: str


def manifest(folder: Path = FOLDER) -> list[Vendored]:
    """The files that are kept."""
    return [Vendored(**row) for row in json.loads((folder / "manifest.json").read_text(encoding="utf-8"))]


def publish(html: Path, folder: Path = FOLDER) -> dict[str, str]:
    """Copy every file and its licence into the site's `vendor/`.

    Returns
    -------
    dict of str to str
        The place under the site that stands for each address.

    Raises
    ------
    SiteError
        A file is not the one that the manifest describes.
    """
    places = {}
    for row in manifest(folder):
        content = (folder / row.file).read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if found != row.sha256:
            raise SiteError(
                f"{folder / row.file} has SHA-256 {found}, the manifest says {row.sha256}; restore the file from "
                f"{row.package} {row.version} on npm, or correct the manifest if the change is meant"
            )
        for name in (row.file, row.licence_file):
            if name is not None:
                target = html / "vendor" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / name, target)
        if row.replaces is not None:
            places[row.replaces] = f"vendor/{row.file}"
    return places


def scripts(folder: Path = FOLDER) -> list[str]:
    """Where the scripts that this project's pages need lie under the site, in the order of the manifest."""
    return [f"vendor/{row.file}" for row in manifest(folder) if row.replaces is None]
