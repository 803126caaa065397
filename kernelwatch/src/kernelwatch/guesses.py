"""What `kernelwatch init` guesses: of each kernel that is found, the class that watches it."""

from __future__ import annotations

import json
import keyword
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import PurePosixPath

from kernelwatch.finder import Found, Parameter
from kernelwatch.kernel.dtypes import CPP
from kernelwatch.launches import Launch
from ptxcount.names import split
from ptxcount.typed import TYPES, VECTORS, plain

#: C++ types -> NumPy's dtypes.
_DTYPES = {**TYPES, "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16"}

#: What integers are called that are the lengths of rows, of columns, and of arrays of one axis.
_WIDTHS = ("w", "width", "cols", "columns", "ncols", "nx")
_HEIGHTS = ("h", "height", "rows", "nrows", "ny")
_LENGTHS = ("n", "size", "count", "length")

#: Threads that a CPU counts in a moment.
_MOST = 1 << 16

#: What axes are called that are no arguments, and what a grid may ask for.
_TAKEN = ("kernel", "dtype", "flags", "arch", "copy", "sides", "multiprocessors")


def problem(one: Found) -> str:
    """Return why a kernel cannot be watched; empty if it can."""
    arrays = [each for each in one.parameters if _is_array(each)]
    if any("Object_t" in each.kind or "CUtensorMap" in each.kind for each in one.parameters):
        return "it takes textures or tensor maps"
    if not arrays:
        return "it takes no array by a pointer of its own"
    return "" if any(not _is_const(each) for each in arrays) else "it writes to no array that it takes"


def _is_array(one: Parameter) -> bool:
    return one.kind.count("*") + one.kind.count("[") == 1 and "(" not in one.kind


def _is_const(one: Parameter) -> bool:
    return re.search(r"\bconst\b", one.kind.partition("*")[0]) is not None


def names(found: Sequence[Found]) -> Iterator[str]:
    """Yield a name for each kernel, and so for each class, that no other has: if need be with that of its file."""
    short = [each.name.rpartition("::")[2] for each in found]
    several = Counter(map(title, short))
    taken = {"Compiled", "Suite"}
    for one, name in zip(found, short, strict=True):
        path = PurePosixPath(one.file)
        stem, parent = (re.sub(r"\W", "_", each) for each in (path.stem, path.parent.name))
        allowed = [name] * (several[title(name)] == 1) + [f"{stem}_{name}", f"{parent}_{stem}_{name}"]
        numbered = (f"{stem}_{name}_{n}" for n in range(2, len(found) + 2))
        chosen = next(each for each in (*allowed, *numbered) if title(each) not in taken)
        taken |= {f"{first}{title(chosen)}{last}" for first in ("", "Isolated") for last in ("", "Times", "Ratios")}
        yield chosen


def title(name: str) -> str:
    """Return what the class of a kernel is called."""
    found = "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", name))
    return found if found.isidentifier() and not keyword.iskeyword(found) else f"Kernel{found}"


def written(one: Found, name: str, launch: Launch | None, flags: Sequence[str] = ()) -> str:
    """Return the class that watches a kernel, with what nobody knows of it in its TODO."""
    todo: list[str] = []
    parameters = [each if _is_array(each) else each._replace(name=_safe(each.name)) for each in one.parameters]
    numbers = [each for each in parameters if not _is_array(each) and plain(each.kind) in _DTYPES]
    integers = [each.name for each in numbers if "int" in _DTYPES[plain(each.kind)]]
    called = tuple(each.name for each in parameters)
    grid, block, shared = launch.geometry(called) if launch else (None, None, None)
    todo += ["the grid"] * (grid is None) + ["the block"] * (block is None)
    threads = prod(map(int, grid)) * prod(block) if grid and block and not _words(*grid) else 0
    if threads > _MOST:
        todo.append(f"the grid: in the host's code {_text(grid)}, for larger arrays")
        grid = None
    sides = tuple(each for text in grid or () for each in _words(text)[:1] if each in integers)
    over = sides or _over(integers)
    block = block or ((32, 8) if len(over) > 1 else (min(one.most or 256, 256),))
    entry, swept, dtypes = _entry(one, launch, todo)
    first, *others = [_argument(each, " ".join(reversed(over)), swept, todo) for each in parameters]
    *others, last = (f"[{first}", *others)
    if launch and shared is None:
        todo.append(f"dynamic_shared: {launch.configuration[2]}")
    if one.unit.problem:
        todo.append(f"what nvcc does not compile: {one.unit.problem}")
    options = {
        "text": one.unit.made,
        "file": "" if one.unit.made else one.unit.file,
        "include": one.unit.include,
        "options": tuple(flags),
        "entry": entry if entry != name else "",
        "block": block if len(block) > 1 else block[0],
        "grid" if grid else "over": grid or over,
        "dynamic_shared": shared,
    }
    given = [f"{key}={_text(value)}" for key, value in options.items() if value]
    values: dict[str, list[int] | list[str]] = {}
    for each in (*over, *(each.name for each in numbers), *_words(*(grid or ()), shared or "")):
        values[each] = [(256 if len(over) > 1 else max(4096, threads if grid else 0)) if each in over else 1]
    if dtypes not in ([], ["float32"]):
        values["dtype"] = dtypes
    launched = f", launched in {launch.file}" if launch else ""
    lines = [
        f"class {title(name)}(kw.Watched):  # {one.file}:{one.line}{launched}",
        *([_filled("    # ", "    # ", f"TODO: {'; '.join(todo)}".split(" "), " ")] if todo else []),
        _filled("    kernel = kw.Kernel(", " " * 8, [_text(name), *others, f"{last}]", *given], ", ") + ")",
        f"    param_names, params = {_text(tuple(values))}, {_text(tuple(values.values()))}",
    ]
    return "\n".join(lines) + "\n"


def _filled(first: str, other: str, items: Sequence[str], between: str) -> str:
    """Return items in lines of 119 columns, broken between them alone; a bracket may follow."""
    text = between.join(item.replace(" ", "\0") for item in items)
    lines = textwrap.wrap(
        text, 119, initial_indent=first, subsequent_indent=other, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ")


def _words(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)))


def _over(integers: Sequence[str]) -> tuple[str, ...]:
    """Return the lengths of arrays, a row's first: a width and a height, or one."""
    known = (_WIDTHS, _HEIGHTS, _LENGTHS)
    width, height, length = (next((one for one in integers if one.lower() in each), "") for each in known)
    return (width, height) if width and height else (length or [*integers, "n"][0],)


def _safe(name: str) -> str:
    """Return what an argument is called that an expression and an axis can name."""
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else name


def _argument(one: Parameter, shape: str, swept: str, todo: list[str]) -> str:
    """Return what declares a parameter; arrays have the shape."""
    base = plain(one.kind).rstrip("* []").strip()
    vector = VECTORS.fullmatch(base)
    dtype = TYPES[vector[1]] if vector else _DTYPES.get(base)
    named = _text(one.name)
    if _is_array(one):
        shape = f"{shape} {vector[2]}" if vector else shape
        typed = f", {_text(dtype or f'TODO: the dtype of {base}')}"
        if swept and re.search(rf"\b{swept}\b", one.written):
            typed = ""
        elif dtype is None:
            todo.append(f"the dtype of {one.name}, {base}")
        return f"kw.{'inputs' if _is_const(one) else 'in_and_out'}({named}, {_text(shape)}{typed})"
    if plain(one.kind) in _DTYPES:
        return named if dtype not in ("float16", "bfloat16") else f"kw.scalar({named}, {_text(dtype)})"
    todo.append(f"the value of {one.name}, {one.kind or 'a struct'}")
    return f'kw.scalar({named}, "V{one.size or 8}", value=b"")'


def _entry(one: Found, launch: Launch | None, todo: list[str]) -> tuple[str, str, list[str]]:
    """Return the entry point, the type of its template that is swept, and the dtypes of that."""
    types = [place for place, each in enumerate(one.template) if re.match(r"(typename|class)\b", each)]
    made = [split(each.partition("<")[2][:-1]) for each in one.instances]
    if not made:
        if not one.template:
            return one.entry, "", []
        made = [_guessed(one, launch, todo)]
    first = made[0]
    if len(types) == 1 and len(first) == len(one.template):
        (place,) = types
        alike = [each for each in made if [*each[:place], *each[place + 1 :]] == [*first[:place], *first[place + 1 :]]]
        dtypes = [_DTYPES.get(each[place], "") for each in alike]
        if CPP.keys() >= {*dtypes}:
            first = [*first[:place], "{T}", *first[place + 1 :]]
            return f"{one.name}<{', '.join(first)}>", one.template[place].partition("=")[0].split()[-1], dtypes
    return f"{one.name}<{', '.join(first)}>", "", []


def _guessed(one: Found, launch: Launch | None, todo: list[str]) -> list[str]:
    """Return arguments of a template that nobody has: as the host's code says, or else as they are by default."""
    found = []
    for place, each in enumerate(one.template):
        head, _, default = each.partition("=")
        name, is_type = head.split()[-1].lstrip("."), bool(re.match(r"(typename|class)\b", head))
        given = launch.template[place] if launch and place < len(launch.template) else ""
        known = given if given in TYPES else launch.expression(given, {}) if launch and given else None
        is_element = any(re.search(rf"\b{name}\b[^,]*[*[]", parameter.written) for parameter in one.parameters)
        if not (known or default or (is_type and is_element)):
            todo.append(f"{name} of its template")
        found.append(known or default.strip() or ("float" if is_type else "true" if head.startswith("bool") else "1"))
    return found


def _text(value: object) -> str:
    """Return a value as Python writes it, with double quotes."""
    if isinstance(value, tuple | list):
        inside = ", ".join(map(_text, value)) + "," * (isinstance(value, tuple) and len(value) == 1)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
