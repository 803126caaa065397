"""Environment for git, without variables that select another repository than that of the current folder."""

import os

#: Variables that git sets for hooks, aliases and `rebase --exec`, or that relocate a part of a repository. `git
#: rev-parse --local-env-vars` lists them; those with configuration stay.
_OF_ANOTHER = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_DIR", "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE", "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)  # fmt: skip

#: Variable with the options of `git -c`, and the option that disables colours.
_OPTIONS, _PLAIN = "GIT_CONFIG_PARAMETERS", "'color.ui=never'"


def make_environment() -> dict[str, str]:
    """Return this process's environment, changed so that git uses the repository of its folder and no colours."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER}
    options = kept.get(_OPTIONS, "").removesuffix(_PLAIN).strip()
    return kept | {_OPTIONS: f"{options} {_PLAIN}".strip()}


def set_environment() -> None:
    """Set this environment in this process, for programs that call git by themselves."""
    wanted = make_environment()
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)
