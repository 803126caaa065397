"""The two files with which asv describes a project: its configuration, and the list of its benchmarks.

They are read without asv, whose import takes longer than a review. But asv reads a configuration that is JSON5 beyond
lines of comments.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kernelwatch.error_text import one_line
from kernelwatch.store import reading

#: Version of asv's list of benchmarks.
BENCHMARKS_VERSION = 2

#: Pattern of a line that is a comment.
_COMMENT_LINE = re.compile(rb"^\s*//.*$", re.MULTILINE)


class BenchmarkDescription(msgspec.Struct):
    """A benchmark in asv's list."""

    name: str
    type: str
    params: list[list[str]]
    param_names: list[str]
    unit: str | None = None
    pretty_name: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        if len(self.params) != len(self.param_names):
            raise ValueError(f"{self.name} has {len(self.params)} params and {len(self.param_names)} param_names")


class Configuration(msgspec.Struct):
    """The settings of asv that the library reads, with asv's defaults."""

    repo: str
    #: Published branches; None is the checked-out branch.
    branches: Sequence[str | None] = (None,)
    project: str = "project"
    results_dir: str = "results"
    html_dir: str = "html"
    show_commit_url: str = "#"

    def __post_init__(self) -> None:
        if not self.branches:  # asv rejects it, too
            raise ValueError("branches is empty; name a branch, or leave it out")


def load_configuration(path: Path) -> Configuration:
    """Return the configuration in an asv.conf.json. Raises UnreadableError if the file is not readable or valid."""
    text = _COMMENT_LINE.sub(b"", reading.read_content(path))
    try:
        document: object = json.loads(text)
    except (RecursionError, ValueError):
        document = _load_with_asv(path)
    return reading.convert_model(document, Configuration, path)


def _load_with_asv(path: Path) -> dict[str, object]:
    from asv.config import Config  # noqa: PLC0415 -- only for JSON5
    from asv.util import UserError  # noqa: PLC0415

    try:
        return dict(vars(Config.load(str(path))))
    except (UserError, RecursionError, ValueError) as error:
        raise reading.UnreadableError(f"{path}: {one_line(error).replace('<string>:', 'line ')}") from None


def load_benchmarks(results: Path) -> Mapping[str, BenchmarkDescription]:
    """Return name -> description of the benchmarks that asv lists in a folder of results.

    Raises UnreadableError if the list is missing, has another version, or does not fit its model.
    """
    path = results / reading.BENCHMARKS_FILE
    try:
        entries = reading.convert_model(reading.parse_json(path), dict[str, object], path)
        if (version := entries.pop("version", None)) != BENCHMARKS_VERSION:
            raise reading.UnreadableError(f"{path}: has version {version!r}, not {BENCHMARKS_VERSION}")
        descriptions = reading.convert_model([*entries.values()], list[BenchmarkDescription], path)
    except reading.UnreadableError as error:
        raise reading.UnreadableError(f"{error}; to write it, run: asv run --bench just-discover") from None
    return {description.name: description for description in descriptions}
