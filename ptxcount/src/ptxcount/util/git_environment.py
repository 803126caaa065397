"""Environment for git: no variable that names another repository than that of the folder it runs in."""

from __future__ import annotations

import os

#: Variables that git sets for hooks, aliases and `rebase --exec`, or that move a part of a repository.
#: `git rev-parse --local-env-vars` lists them; those that hold configuration stay.
_OF_ANOTHER = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_DIR", "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE", "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)  # fmt: skip

#: Variable from which git reads options of `-c`, and the option that switches colours off.
_OPTIONS, _PLAIN = "GIT_CONFIG_PARAMETERS", "'color.ui=never'"


def make_environment() -> dict[str, str]:
    """Return this process's environment, in which git asks the repository of its folder and prints no colours."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER}
    options = kept.get(_OPTIONS, "").removesuffix(_PLAIN).strip()
    return kept | {_OPTIONS: f"{options} {_PLAIN}".strip()}


def set_environment() -> None:
    """Give this process that environment, for programs that call git by themselves."""
    wanted = make_environment()
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)
