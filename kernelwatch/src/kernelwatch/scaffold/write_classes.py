"""The classes that `kernelwatch init` writes: one guess per kernel of the repository."""

import json
import keyword
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from kernelwatch.kernel.declaration import RESERVED
from kernelwatch.kernel.dtypes import CPP
from kernelwatch.scaffold.find_kernels import KernelCandidate, KernelParameter
from kernelwatch.scaffold.parse_launches import HostLaunch
from ptxcount.report.kernel_uses import KernelUses, describe_element
from ptxcount.report.launch_guess import guess_block
from ptxcount.source.cpp_types import TYPES, find_base, strip_qualifiers
from ptxcount.source.declarations import guess_template_argument

#: C++ types -> NumPy's dtypes.
_DTYPES = {**TYPES, "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16"}

#: Usual names of the number of columns, the number of rows, and the length of a one-dimensional array.
_LENGTHS = (
    ("w", "width", "cols", "columns", "ncols", "nx"),
    ("h", "height", "rows", "nrows", "ny"),
    ("n", "size", "count", "length"),
)

#: Guessed length of a one-dimensional array, and of each side of a matrix. The second pair is for kernels whose threads
#: check bounds: its lengths are not multiples of a block.
_SIZES, _BOUNDED_SIZES = (4096, 256), (4088, 248)


def find_problem(kernel: KernelCandidate) -> str:
    """Return why a kernel cannot be watched; empty if it can."""
    arrays = [parameter for parameter in kernel.parameters if _is_array(parameter)]
    if any("Object_t" in parameter.kind or "CUtensorMap" in parameter.kind for parameter in kernel.parameters):
        return "it takes textures or tensor maps"
    if not arrays:
        return "it has no parameter that is a pointer to an array"
    is_written = any(_find_direction(array, kernel.uses) != "in" for array in arrays)
    return "" if is_written else "it writes to none of its arrays, so it has no output"


def _is_array(parameter: KernelParameter) -> bool:
    """Return whether a parameter is a pointer or array of elements; other pointers are no arrays."""
    return parameter.kind.count("*") + parameter.kind.count("[") == 1 and "(" not in parameter.kind


def _find_direction(array: KernelParameter, uses: KernelUses) -> str:
    """Return "in", "out" or "in and out"; empty if unknown. A pointer to const is "in"."""
    is_const = re.search(r"\bconst\b", array.kind.partition("*")[0]) is not None
    return "in" if is_const else uses.find_direction(array.name)


def name_kernels(kernels: Sequence[KernelCandidate]) -> Iterator[str]:
    """Yield a name for each kernel, after those of its file and folder, or with a number, if classes would be equal."""
    used_names = {"Compiled", "Suite"}
    for kernel in kernels:
        path, name = PurePosixPath(kernel.unit.file), kernel.name.rpartition("::")[2]
        stem, parent = (re.sub(r"\W", "_", text) for text in (path.stem, path.parent.name))
        numbered = [f"{stem}_{name}_{n}" for n in range(2, len(kernels) + 2)]
        candidates = (name, f"{stem}_{name}", f"{parent}_{stem}_{name}", *numbered)
        chosen = next(candidate for candidate in candidates if used_names.isdisjoint(_list_class_names(candidate)))
        used_names |= _list_class_names(chosen)
        yield chosen


def _list_class_names(name: str) -> set[str]:
    """Return the names of a watched kernel's class and of the classes that `Watched` derives from it."""
    return {f"{first}{name_class(name)}{last}" for first in ("", "Isolated") for last in ("", "Times", "Ratios")}


def name_class(name: str) -> str:
    """Return a kernel's name in camel case, after "Kernel" if it is not a valid name of a class."""
    joined = "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", name))
    return joined if joined.isidentifier() and not keyword.iskeyword(joined) else f"Kernel{joined}"


def write_class(kernel: KernelCandidate, name: str, launch: HostLaunch | None, flags: Sequence[str]) -> str:
    """Return the text of the class that watches a kernel. Its TODO lists the guesses that the author must replace."""
    uses = kernel.uses
    todo = ["the grid"] if launch and launch.block else ["the grid", "the block"]
    parameters = [
        parameter if _is_array(parameter) else parameter._replace(name=_rename_reserved(parameter.name))
        for parameter in kernel.parameters
    ]
    numbers = _find_numbers(parameters)
    over, shape = _guess_lengths(uses, [number for number, dtype in numbers.items() if "int" in dtype])
    dynamic_shared = _choose_dynamic_shared(launch, todo)
    entry, swept, dtypes = _choose_entry(kernel, launch, todo)
    arguments = [_declare_argument(parameter, shape, swept, todo, uses) for parameter in parameters]
    constants = uses.find_constants()
    todo += [f"the values of {constant}" for constant in constants]
    if launch:
        todo[-1] += f"; the host code has {launch.text} in {launch.file}"
    settings = {
        "text": kernel.unit.python_name,
        "file": "" if kernel.unit.python_name else kernel.unit.file,
        "include": kernel.unit.include,
        "options": tuple(flags),
        "entry": entry if entry != name else "",
        **_guess_geometry(kernel, launch, over, shape),
        "dynamic_shared": dynamic_shared,
    }
    keywords = [f"{setting}={_format_value(value)}" for setting, value in settings.items() if value]
    keywords += _declare_constants(constants)
    axes = _choose_values(uses, over, shape, numbers)
    dtypes = dtypes or _find_written_dtypes(parameters, uses)[:1]
    if dtypes not in ([], ["float32"]):
        axes["dtype"] = dtypes
    return _format_class(name, kernel.place, todo, arguments, keywords, axes)


def _format_class(
    name: str, place: str, todo: Sequence[str], arguments: Sequence[str], keywords: Sequence[str],
    axes: Mapping[str, object],
) -> str:  # fmt: skip
    items = [_format_value(name), f"[{arguments[0]}", *arguments[1:], *keywords]
    items[len(arguments)] += "]"
    lines = [
        f"class {name_class(name)}(kw.Watched):  # {place}",
        _fill_lines("    # ", "    # ", f"TODO: {'; '.join(todo)}".split(" "), " "),
        _fill_lines("    kernel = kw.Kernel(", " " * 8, items, ", ") + ")",
        f"    param_names, params = {_format_value(tuple(axes))}, {_format_value(tuple(axes.values()))}",
    ]
    return "\n".join(lines) + "\n"


def _guess_lengths(uses: KernelUses, integers: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Guess the axes that the grid covers, and the shape of all arrays as a text for `Kernel`, slowest axis first."""
    over = _choose_axes([integer for integer in integers if integer not in uses.iteration_counts])
    is_square = uses.declaration.planar and not integers
    if len(over) == 1 and (is_square or (uses.is_bound(over[0]) and uses.is_pitch(over[0]))):
        return over, f"{over[0]} {over[0]}"
    return over, " ".join(reversed(over))


def _choose_dynamic_shared(launch: HostLaunch | None, todo: list[str]) -> str:
    """Return the launch's bytes of dynamic shared memory, empty if there are none; append an expression to `todo`."""
    text = launch.shared if launch else ""
    if text and not text.isdigit():
        todo.append("dynamic_shared")
        return ""
    return text.lstrip("0")


def _find_numbers(parameters: Iterable[KernelParameter]) -> dict[str, str]:
    """Return name -> dtype of each parameter that is a number."""
    kinds = {parameter.name: strip_qualifiers(parameter.kind) for parameter in parameters if not _is_array(parameter)}
    return {name: _DTYPES[kind] for name, kind in kinds.items() if kind in _DTYPES}


def _declare_constants(constants: Mapping[str, tuple[str, int]]) -> list[str]:
    """Return the text of `constants=`, as the only item; empty without constants: name -> dtype and count."""
    ones = [f'"{constant}": np.ones({count}, "{dtype}")' for constant, (dtype, count) in constants.items()]
    return [f"constants={{{', '.join(ones)}}}"] if ones else []


def _guess_geometry(
    kernel: KernelCandidate, launch: HostLaunch | None, over: Sequence[str], shape: str
) -> dict[str, object]:
    """Guess `block`, `over` and `tile` of `Kernel`; a tile as large as the block is empty."""
    declaration = kernel.uses.declaration
    block = (launch and launch.block) or guess_block(
        declaration.planar or len(over) > 1, kernel.max_threads, kernel.exact_block, kernel.uses.find_block()
    )
    # A two-dimensional grid covers the side of a square matrix twice.
    covered = shape.split()[::-1] if re.search(r"\bblockIdx\s*\.\s*y\b", declaration.body) else over
    threads = (*block, 1)[: len(covered)]
    tile = tuple(kernel.uses.find_tile(axis) or count for axis, count in zip("xy", threads, strict=False))
    return {
        "block": block if len(block) > 1 else block[0],
        "over": tuple(covered),
        "tile": tile if tile != threads else (),
    }


def _choose_values(
    uses: KernelUses, over: Sequence[str], shape: str, numbers: Iterable[str]
) -> dict[str, list[int] | list[str]]:
    """Return axis -> its values: lengths for `over`, small values for all other numbers."""
    vector_size, matrix_side = _BOUNDED_SIZES if uses.is_bounded else _SIZES
    length = matrix_side if " " in shape else vector_size
    others: dict[str, list[int] | list[str]] = {
        number: [4 if number in uses.iteration_counts else 1] for number in numbers if number not in over
    }
    return {**{axis: [length] for axis in over}, **others}


def _find_written_dtypes(parameters: Sequence[KernelParameter], uses: KernelUses) -> list[str]:
    written = [array for array in parameters if _is_array(array) and _find_direction(array, uses) != "in"]
    dtypes = (_split_element(array, uses)[2] for array in written)
    return [dtype for dtype in dtypes if dtype in CPP]


def _fill_lines(first: str, subsequent: str, items: Sequence[str], between: str) -> str:
    """Join items to lines of at most 119 columns, broken only between items. A closing bracket needs the 120th."""
    text = between.join(item.replace(" ", "\0") for item in items)
    lines = textwrap.wrap(
        text, 119, initial_indent=first, subsequent_indent=subsequent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ")


def _choose_axes(integers: Sequence[str]) -> tuple[str, ...]:
    """Guess the axes that the grid covers: width and height, else a length, else the first integer, else "n"."""
    width, height, length = (
        next((integer for integer in integers if integer.lower() in names), "") for names in _LENGTHS
    )
    if width and height:
        return width, height
    return (length or next(iter(integers), "n"),)


def _rename_reserved(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in RESERVED else name


def _split_element(parameter: KernelParameter, uses: KernelUses) -> tuple[str, int, str | None]:
    """Return the type of a parameter's elements, the count of numbers in an element, and their dtype if known."""
    base = find_base(parameter.kind)
    dtype, count = describe_element(base, uses.structs, _DTYPES) or (None, 1)
    return base, count, dtype


def _declare_argument(parameter: KernelParameter, shape: str, swept: str, todo: list[str], uses: KernelUses) -> str:
    """Return the text that declares a parameter for `Kernel`; append guesses to `todo`.

    `shape` is that of arrays. `swept` is the template type of the swept dtype, "" without one.
    """
    if _is_array(parameter):
        return _declare_array(parameter, shape, swept, todo, uses)
    name_text, dtype = _format_value(parameter.name), _DTYPES.get(strip_qualifiers(parameter.kind))
    if dtype is None:
        todo.append(f"the value of {parameter.name}, {parameter.kind or 'a struct'}")
        return f'kw.scalar({name_text}, "V{parameter.size or 8}", value=b"")'
    return name_text if dtype not in ("float16", "bfloat16") else f"kw.scalar({name_text}, {_format_value(dtype)})"


def _declare_array(array: KernelParameter, shape: str, swept: str, todo: list[str], uses: KernelUses) -> str:
    base, count, dtype = _split_element(array, uses)
    if " " not in shape and not uses.is_bounded and not uses.has_plain_indices(array.name):
        shape = f"16*{shape}"  # more than enough, because the threads do not check bounds
    values = [array.name, f"{shape} {count}" if count > 1 else shape]
    if not (swept and re.search(rf"\b{swept}\b", array.written)):
        values.append(dtype or f"TODO: the dtype of {base}")
        if dtype is None:
            todo.append(f"the dtype of {array.name}, {base}")
    texts = list(map(_format_value, values))
    if dtype in ("int32", "uint32", "int64", "uint64") and uses.is_index(array.name):
        texts.append(f"index={_format_value('*'.join(shape.split()))}")
    direction = _find_direction(array, uses)
    if not direction:
        todo.append(f"the direction of {array.name}")
    function = {"in": "inputs", "out": "outputs"}.get(direction, "in_and_out")
    return f"kw.{function}({', '.join(texts)})"


def _choose_entry(kernel: KernelCandidate, launch: HostLaunch | None, todo: list[str]) -> tuple[str, str, list[str]]:
    """Return the entry point for `Kernel`, the template type that {T} replaces in it, and the dtypes of this type."""
    if not kernel.template:
        return kernel.entry, "", []
    arguments = list(_iter_guesses(kernel.template, launch, todo))
    types = [place for place, declared in enumerate(kernel.template) if re.match(r"(typename|class)\b", declared)]
    swept, dtypes = "", list[str]()
    if len(types) == 1 and (dtype := _DTYPES.get(arguments[types[0]])) in CPP:
        arguments[types[0]] = "{T}"
        swept, dtypes = kernel.template[types[0]].partition("=")[0].split()[-1], [str(dtype)]
    return f"{kernel.name}<{', '.join(arguments)}>", swept, dtypes


def _iter_guesses(template: Sequence[str], launch: HostLaunch | None, todo: list[str]) -> Iterator[str]:
    """Yield each template argument: from the launch in host code, or its default, or a guess, which `todo` notes."""
    for place, declared in enumerate(template):
        head, _, default = declared.partition("=")
        host_argument = launch.template[place] if launch and place < len(launch.template) else ""
        if not host_argument and not default.strip():
            todo.append(f"{head.split()[-1]} of its template")
        yield host_argument or guess_template_argument(declared)


def _format_value(value: object) -> str:
    """Return the Python code of a value, with double quotes."""
    if isinstance(value, tuple | list):
        inside = ", ".join(map(_format_value, value))
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
