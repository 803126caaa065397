"""What `kernelwatch init` guesses: of each kernel that is found, the class that watches it."""

from __future__ import annotations

import json
import keyword
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from kernelwatch.kernel.dtypes import CPP
from kernelwatch.scaffold.find_kernels import Found, Parameter
from kernelwatch.scaffold.parse_launches import Launch
from ptxcount.report.launch_guess import guess_block, guess_template_argument
from ptxcount.source.cpp_types import TYPES, VECTORS, strip_qualifiers

#: C++ types -> NumPy's dtypes.
_DTYPES = {**TYPES, "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16"}

#: What integers are called that are the lengths of rows, of columns, and of arrays of one axis.
_LENGTHS = (
    ("w", "width", "cols", "columns", "ncols", "nx"),
    ("h", "height", "rows", "nrows", "ny"),
    ("n", "size", "count", "length"),
)

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
    taken = {"Compiled", "Suite"}
    for one in found:
        path, name = PurePosixPath(one.unit.file), one.name.rpartition("::")[2]
        stem, parent = (re.sub(r"\W", "_", each) for each in (path.stem, path.parent.name))
        numbered = [f"{stem}_{name}_{n}" for n in range(2, len(found) + 2)]
        every = (name, f"{stem}_{name}", f"{parent}_{stem}_{name}", *numbered)
        chosen = next(each for each in every if title(each) not in taken)
        taken |= {f"{first}{title(chosen)}{last}" for first in ("", "Isolated") for last in ("", "Times", "Ratios")}
        yield chosen


def title(name: str) -> str:
    """Return what the class of a kernel is called."""
    found = "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", name))
    return found if found.isidentifier() and not keyword.iskeyword(found) else f"Kernel{found}"


def written(one: Found, name: str, launch: Launch | None, flags: Sequence[str] = ()) -> str:
    """Return the class that watches a kernel, with what nobody knows of it in its TODO."""
    todo = ["the grid"] if launch and launch.block else ["the grid", "the block"]
    parameters = [each if _is_array(each) else each._replace(name=_safe(each.name)) for each in one.parameters]
    numbers = [each for each in parameters if not _is_array(each) and strip_qualifiers(each.kind) in _DTYPES]
    over = _over([each.name for each in numbers if "int" in _DTYPES[strip_qualifiers(each.kind)]])
    block = (launch and launch.block) or guess_block(len(over) > 1, one.most, one.exact)
    shared = launch.shared if launch else ""
    todo += ["dynamic_shared"] * (shared != "" and not shared.isdigit())
    entry, swept, dtypes = _entry(one, launch, todo)
    first, *others = [_argument(each, " ".join(reversed(over)), swept, todo) for each in parameters]
    *others, last = (f"[{first}", *others)
    options = {
        "text": one.unit.made,
        "file": "" if one.unit.made else one.unit.file,
        "include": one.unit.include,
        "options": tuple(flags),
        "entry": entry if entry != name else "",
        "block": block if len(block) > 1 else block[0],
        "over": over,
        "dynamic_shared": shared if shared.isdigit() and int(shared) else "",
    }
    given = [f"{key}={_text(value)}" for key, value in options.items() if value]
    values: dict[str, list[int] | list[str]] = {each: [256 if len(over) > 1 else 4096] for each in over}
    values |= {each.name: [1] for each in numbers if each.name not in over}
    # The rows of a kernel without a swept dtype have that of the array that it writes.
    written_to = (_element(each)[2] for each in parameters if _is_array(each) and not _is_const(each))
    dtypes = dtypes or [dtype for dtype in written_to if dtype in CPP][:1]
    values |= {"dtype": dtypes} if dtypes not in ([], ["float32"]) else {}
    host = f"; the host's code has {launch.text} in {launch.file}" if launch else ""
    lines = [
        f"class {title(name)}(kw.Watched):  # {one.place}",
        _filled("    # ", "    # ", f"TODO: {'; '.join(todo)}{host}".split(" "), " "),
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


def _over(integers: Sequence[str]) -> tuple[str, ...]:
    """Return the lengths of arrays, a row's first: a width and a height, or one."""
    width, height, length = (next((one for one in integers if one.lower() in each), "") for each in _LENGTHS)
    return (width, height) if width and height else (length or [*integers, "n"][0],)


def _safe(name: str) -> str:
    """Return what an argument is called that an expression and an axis can name."""
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else name


def _element(one: Parameter) -> tuple[str, re.Match[str] | None, str | None]:
    """Return a parameter's type without pointers, as a vector if it is one, and the dtype of its numbers if known."""
    base = strip_qualifiers(one.kind).rstrip("* []").strip()
    vector = VECTORS.fullmatch(base)
    return base, vector, TYPES[vector[1]] if vector else _DTYPES.get(base)


def _argument(one: Parameter, shape: str, swept: str, todo: list[str]) -> str:
    """Return what declares a parameter; arrays have the shape."""
    base, vector, dtype = _element(one)
    named = _text(one.name)
    if _is_array(one):
        shape = f"{shape} {vector[2]}" if vector else shape
        typed = f", {_text(dtype or f'TODO: the dtype of {base}')}"
        if swept and re.search(rf"\b{swept}\b", one.written):
            typed = ""
        elif dtype is None:
            todo.append(f"the dtype of {one.name}, {base}")
        return f"kw.{'inputs' if _is_const(one) else 'in_and_out'}({named}, {_text(shape)}{typed})"
    if strip_qualifiers(one.kind) in _DTYPES:
        return named if dtype not in ("float16", "bfloat16") else f"kw.scalar({named}, {_text(dtype)})"
    todo.append(f"the value of {one.name}, {one.kind or 'a struct'}")
    return f'kw.scalar({named}, "V{one.size or 8}", value=b"")'


def _entry(one: Found, launch: Launch | None, todo: list[str]) -> tuple[str, str, list[str]]:
    """Return the entry point, the type of its template that is swept, and the dtypes of that."""
    if not one.template:
        return one.entry, "", []
    given = list(_guessed(one.template, launch, todo))
    types = [place for place, each in enumerate(one.template) if re.match(r"(typename|class)\b", each)]
    swept, dtypes = "", list[str]()
    if len(types) == 1 and (dtype := _DTYPES.get(given[types[0]])) in CPP:
        given[types[0]], swept, dtypes = "{T}", one.template[types[0]].partition("=")[0].split()[-1], [str(dtype)]
    return f"{one.name}<{', '.join(given)}>", swept, dtypes


def _guessed(template: Sequence[str], launch: Launch | None, todo: list[str]) -> Iterator[str]:
    """Yield arguments of a template: as the host's code says, or as they are by default, or some."""
    for place, each in enumerate(template):
        head, _, default = each.partition("=")
        said = "".join(launch.template[place : place + 1]) if launch else ""
        todo += [f"{head.split()[-1]} of its template"] * (not said and not default.strip())
        yield said or guess_template_argument(each)


def _text(value: object) -> str:
    """Return a value as Python writes it, with double quotes."""
    if isinstance(value, tuple | list):
        inside = ", ".join(map(_text, value)) + "," * (isinstance(value, tuple) and len(value) == 1)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
