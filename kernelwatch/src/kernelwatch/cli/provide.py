"""`kernelwatch provide` makes this library importable in an environment of asv, and installs a commit's package there.

A run calls it if a package cannot be imported from the commit's files.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.config import project_root


def provide_libraries(words: Sequence[str] | None = None) -> int:
    """Let an environment import this Python's packages, after the environment's own; install a commit's package there.

    If the installation fails, as without network, the package is built with installed tools. Return pip's exit code, 0
    if there is nothing to install.
    """
    parser = argparse.ArgumentParser("kernelwatch provide")
    parser.add_argument("environment", type=Path, help="folder of asv's environment")
    parser.add_argument(
        "commit",
        type=Path,
        nargs="?",
        help="folder with a commit's checkout, whose package is installed into the environment",
    )
    options = parser.parse_args(words)
    folder = next(options.environment.glob("lib/python3*/site-packages"), None)
    if folder is None:
        parser.error(f"{options.environment} has no lib/python3*/site-packages; give the folder of an environment")
    package_paths = (path for path in sys.path if Path(path).name in ("site-packages", "dist-packages"))
    lines = dict.fromkeys([*project_root.list_libraries(), *package_paths])
    (folder / "kernelwatch.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if options.commit is None or not any((options.commit / name).is_file() for name in ("pyproject.toml", "setup.py")):
        return 0
    python = options.environment.absolute() / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", str(options.commit)]
    code = subprocess.run(install, check=False).returncode
    return code and subprocess.run([*install, "--no-build-isolation"], check=False).returncode
