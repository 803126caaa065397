"""Compilations and counts of launches that the cache lacks. They need NumPy, which a cached check does not import."""

from typing import Any

from ..cli.argument_words import make_arguments, make_variables, name_arguments
from ..engine.kernel_counts import compile_entry, count_compiled, find_kernel, read_or_compile
from ..report.listing import list_lines
from ..source.cpp_types import check_arguments
from ..source.cuda_compiler import Compilation
from ..source.names import cpp_name
from ..source.ptxas import list_machine_accesses
from .advice import find_advice
from .compilations import Compiled, Recipe
from .diagnostics import UNKNOWN_LIMITS, WRONG_KERNEL
from .launches import Launch

#: Codes of findings on a launch that are no fault of the kernel; others are `WRONG_KERNEL`.
_CODES = {"unknown-limits": UNKNOWN_LIMITS}


def compile_recipe(recipe: Recipe) -> Compiled:
    """Compile a recipe's source, or read its PTX; raise as `compile_entry` does."""
    if recipe.instance:
        return Compiled(*compile_entry(*recipe))
    return Compiled(read_or_compile(recipe.source, recipe.flags, recipe.arch), None)


def compute_counts(launch: Launch, compilation: Compilation, name: str | None) -> dict[str, Any]:
    """Count a launch; return the results to cache.

    ``name`` is the mangled name of a template instance, or None. Raises as `ptxcount.count`.
    """
    entry = name or find_kernel(launch.folder / launch.file, compilation.ptx, launch.kernel)
    arguments = make_arguments(launch.arguments, launch.folder)
    check_arguments(arguments, launch.arguments, entry, compilation.files)
    counters = count_compiled(
        compilation.ptx,
        entry,
        launch.grid,
        launch.block,
        arguments,
        flags=launch.flags,
        arch=launch.arch,
        dynamic_shared=launch.dynamic_shared,
        variables=make_variables(launch.variables, launch.folder),
        names=name_arguments(launch.arguments),
        cluster=launch.cluster,
    )
    findings = [
        (_CODES.get(finding.code, WRONG_KERNEL), finding.message, [(finding.source.file, finding.source.line)])
        for finding in counters.findings
        if finding.code != "printf"
    ]
    return {
        "kernel": cpp_name(entry),
        "totals": counters.totals(),
        "lines": list_lines(counters),
        "machine": list_machine_accesses(compilation.ptx, entry, launch.flags, launch.arch),
        "warnings": [*find_advice(counters, arguments, launch.arguments), *findings],
    }
