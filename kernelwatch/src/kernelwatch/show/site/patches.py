"""How functions of asv are replaced: each by what a table names, where asv's own is what ours expects.

asv has no hooks for what the plugin does. Another release may have another function of that name. Then everything that
needs it is switched off together, one line says so, and the rest works.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, NamedTuple

from asv.console import log

#: The release that the tables were made with; requirements/asv.txt pins it.
ASV = "0.6.6"


class Patch(NamedTuple):
    """A function of asv and what stands in its place.

    Parameters
    ----------
    where : str
        Module and name in it, "asv.runner:ForkServer.run".
    ours : callable
        Callable (asv's own) -> what replaces it. Class and static methods stay such.
    expects : str
        What ours relies on. Words: parameters by these names. "source" and eight digits: the beginning of the SHA-256
        of its source, where ours does its work. "module" and a name, or "object" and that of its class: such a one.
    """

    where: str
    ours: Callable[[Any], Any]
    expects: str


class Feature(NamedTuple):
    """What some patches do together: all of them are made, or none.

    Parameters
    ----------
    what : str
        What is switched off without it, as a person reads it.
    patches : tuple of Patch
        In the order in which they are made.
    """

    what: str
    patches: tuple[Patch, ...]


def problem(patch: Patch) -> str | None:
    """Return why a function of asv is not what ours expects; None if it is."""
    try:
        _, _, found = _found(patch.where)
    except (ImportError, AttributeError):
        return f"there is no {patch.where}"
    function, (kind, _, digest) = getattr(found, "__func__", found), patch.expects.partition(" ")
    if kind in ("module", "object"):
        name = getattr(found, "__name__", "") if kind == "module" else type(found).__name__
        return None if name == digest else f"{patch.where} is another"
    if kind == "source":
        return None if source(function) == digest else f"{patch.where} has another source"
    taken = inspect.signature(function).parameters
    lacks = [name for name in patch.expects.split() if name not in taken]
    if not lacks or any(each.kind is each.VAR_KEYWORD for each in taken.values()):
        return None
    return f"{patch.where} does not take {', '.join(lacks)}"


def source(function: Any) -> str:
    """Return the first eight digits of the SHA-256 of a function's source."""
    return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:8]


def install(features: Iterable[Feature]) -> list[str]:
    """Make the patches of those features whose functions are all as expected; say in one line what is switched off.

    Returns
    -------
    list of str
        What is switched off.
    """
    wrong = {each: _problems(each.patches) for each in features}  # all are looked at before the first is made
    for feature, problems in wrong.items():
        for patch in feature.patches if not problems else ():
            owner, name, found = _found(patch.where)
            function = getattr(found, "__func__", None)
            made = patch.ours(found) if function is None else type(found)(patch.ours(function))
            setattr(owner, name, made)
    off = [feature.what for feature, problems in wrong.items() if problems]
    if off:
        why = "; ".join(f"{each.what} ({', '.join(problems)})" for each, problems in wrong.items() if problems)
        log.warning(f"asv {version('asv')} is not the {ASV} that kernelwatch knows; switched off: {why}")
    return off


@contextmanager
def meanwhile(features: Iterable[Feature]) -> Iterator[None]:
    """Make the patches of `install` for as long as a block runs."""
    several = tuple(features)
    before = [_found(patch.where) for each in several for patch in each.patches if problem(patch) is None]
    install(several)
    try:
        yield
    finally:
        for owner, name, found in before:
            setattr(owner, name, found)


def _problems(patches: Sequence[Patch]) -> list[str]:
    return [found for patch in patches if (found := problem(patch)) is not None]


def _found(where: str) -> tuple[Any, str, Any]:
    """Return what holds a function, its name there, and what is bound to it, class and static methods as such."""
    module, _, path = where.partition(":")
    *outer, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for each in outer:
        owner = getattr(owner, each)
    return owner, name, inspect.getattr_static(owner, name)
