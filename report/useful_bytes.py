"""What a configuration launches, told by the names of its parameters, and the bytes that must move for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import values
from benchmarks.instruments import remarks
from gpu_kernels import KERNELS, dtypes
from gpu_kernels.errors import GpuKernelsError

Params = dict[str, str]


@dataclass(frozen=True)
class Configuration:
    """What one configuration launches.

    Parameters
    ----------
    kernel : of the catalog; None for the plain copy.
    dtype, flags : by name; no flags for the plain copy.
    arguments : the kernel's, as far as the parameters tell them.
    """

    kernel: str | None
    dtype: str
    flags: str | None
    arguments: dict[str, int]

    @property
    def machine_code(self) -> str | None:
        """The cubin's name in `cubins.jsonl`; None where no kernel of the catalog runs."""
        if self.kernel is None or self.flags is None:
            return None
        return remarks.configuration(self.kernel, self.dtype, self.flags)

    def useful_bytes(self) -> int:
        """Every element once in and once out. Raises GpuKernelsError or KeyError for what the catalog lacks."""
        if self.kernel is not None:
            return KERNELS[self.kernel].useful_bytes(self.dtype, **self.arguments)
        return 2 * self.arguments["rows"] * self.arguments["columns"] * dtypes.get(self.dtype).itemsize


def _matrix(params: Params) -> dict[str, int]:
    return values.matrix(params["rows x columns"]) if "rows x columns" in params else {}


def _configuration(params: Params, kernel: str | None, arguments: dict[str, int]) -> Configuration:
    return Configuration(kernel, params["dtype"], params.get("flags"), arguments)


def _copy(params: Params, place: str) -> Configuration:
    numbers = {name: int(params[name]) for name in ("size", place) if name in params}
    return _configuration(params, f"{place}_copy", numbers)


def _matrix_sized_copy(params: Params) -> Configuration:
    return _configuration(params, *values.matrix_sized_copy(params["copy"]))


#: A parameter that tells what is launched -> how; the first that a configuration has. To know another: one row.
READERS: dict[str, Callable[[Params], Configuration]] = {
    "kernel": lambda params: _configuration(params, params["kernel"], _matrix(params)),
    "offset": lambda params: _copy(params, "offset"),
    "stride": lambda params: _copy(params, "stride"),
    "copy": _matrix_sized_copy,
    "rows x columns": lambda params: _configuration(params, None, _matrix(params)),
}


def configuration(params: Params) -> Configuration | None:
    """What a configuration launches; None where its parameters do not tell.

    Results may be older or newer than this table, so what it does not know is no error.
    """
    try:
        return next((how(params) for name, how in READERS.items() if name in params), None)
    except (KeyError, ValueError):
        return None


def of(params: Params) -> int | None:
    """Bytes a launch must move; None where they are not known here."""
    found = configuration(params)
    try:
        return None if found is None else found.useful_bytes()
    except (KeyError, GpuKernelsError):
        return None
