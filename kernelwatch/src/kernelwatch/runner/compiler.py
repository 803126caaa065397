"""The one compiler of a run, by which asv's environments are named, too."""

from __future__ import annotations

import os
from typing import Any

from asv.util import UserError

from kernelwatch.errors import CompileError, NvccNotFoundError
from kernelwatch.toolchain import cache, nvcc, releases
from kernelwatch.toolchain.nvcc_call import NvccOutput

#: The parts of asv's matrix; one that has others is of requirements alone.
_PARTS = {"req", "env", "env_nobuild"}


def choose(conf: Any) -> None:
    """Choose the compiler that the environment asks for, try it, and leave it alone in asv's matrix.

    Raises
    ------
    UserError
        It is not there, is no release of CUDA, or compiles nothing.
    """
    releases.use()
    try:
        compiler = nvcc.find_nvcc()
        # What has compiled once, and is the same, is not tried again.
        cache.lookup(cache.key("probe", *nvcc.programs(compiler)), lambda: NvccOutput(nvcc.probe(compiler), ""))
        os.environ.setdefault("NVCC", str(compiler))
    except NvccNotFoundError as error:
        if "NVCC" in os.environ:
            raise UserError(str(error)) from None
    except (CompileError, OSError) as error:  # reported once, here; else every configuration would be stored as failed
        raise UserError(str(error)) from None
    matrix = dict(conf.matrix) if set(conf.matrix) <= _PARTS else {"req": conf.matrix}
    kind, variable = releases.KEY
    others = {name: values for name, values in matrix.get(kind, {}).items() if name != variable}
    found = releases.found()
    conf.matrix = {**matrix, kind: others | ({variable: [found]} if found else {})}
