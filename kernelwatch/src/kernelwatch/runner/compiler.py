"""The compiler of a run. A run has only one. Its release is part of the names of asv's environments."""

import os
from pathlib import Path
from typing import Any

from asv.util import UserError

from kernelwatch.errors import CompileError, KernelwatchError, NvccNotFoundError
from kernelwatch.toolchain import cache, nvcc, releases
from kernelwatch.toolchain.nvcc_call import NvccOutput

#: Keys of asv's matrix. A matrix without these keys is a table of requirements.
_MATRIX_KEYS = {"req", "env", "env_nobuild"}


def choose_compiler(conf: Any) -> None:
    """Choose the run's compiler, and test it unless it compiled before.

    The environment variable CUDA_TOOLKIT or NVCC may request a compiler. Afterwards, NVCC names the compiler, and asv's
    matrix has its release as the only value of CUDA_TOOLKIT, or no value for the default compiler. Raises UserError if
    the requested compiler cannot be used, or the compiler does not compile. Without any compiler, nothing is tested.
    """
    try:
        releases.use_requested_release()
        compiler = nvcc.find_nvcc()
        _test_compiler(compiler)
        os.environ.setdefault("NVCC", str(compiler))
    except NvccNotFoundError as error:
        if "NVCC" in os.environ:
            raise UserError(str(error)) from None
    except (KernelwatchError, CompileError, OSError) as error:
        raise UserError(str(error)) from None  # reported once, instead of for every configuration
    _set_release(conf)


def _test_compiler(compiler: Path) -> None:
    """Compile an example; the cache remembers a success until the compiler changes."""
    cache.lookup(
        cache.make_key("probe", *nvcc.list_program_facts(compiler)),
        lambda: NvccOutput(nvcc.compile_probe(compiler), ""),
    )


def _set_release(conf: Any) -> None:
    matrix = dict(conf.matrix) if set(conf.matrix) <= _MATRIX_KEYS else {"req": conf.matrix}
    kind, variable = releases.MATRIX_KEY
    other_variables = {name: values for name, values in matrix.get(kind, {}).items() if name != variable}
    installed = releases.installed_release()
    conf.matrix = {**matrix, kind: other_variables | ({variable: [installed]} if installed else {})}
