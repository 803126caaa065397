"""Environment for git, without variables that select another repository than the current folder's."""

import os

#: Variables that select a repository, or relocate its files. git sets some for hooks, aliases and `rebase --exec`. `git
#: rev-parse --local-env-vars` lists most of them, and variables that hold configuration, which are left out here.
_REPOSITORY_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_DIR", "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE", "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)  # fmt: skip
#: Variable with the options of `git -c`, and the option that disables colours.
_OPTIONS, _PLAIN = "GIT_CONFIG_PARAMETERS", "'color.ui=never'"


def make_environment() -> dict[str, str]:
    """Return this process's environment, changed so that git uses the current folder's repository and no colours."""
    kept = {name: value for name, value in os.environ.items() if name not in _REPOSITORY_VARIABLES}
    options = kept.get(_OPTIONS, "").removesuffix(_PLAIN).strip()
    return kept | {_OPTIONS: f"{options} {_PLAIN}".strip()}


def set_environment() -> None:
    """Change this process's environment to that of `make_environment`, for libraries that call git themselves."""
    wanted = make_environment()
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)
