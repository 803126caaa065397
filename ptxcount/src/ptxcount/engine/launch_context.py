"""Makes the `Context` of a launch: checks options and sizes, and places variables and arguments in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from ..counting.counters import LaunchCounters
from ..isa.operands import STACK
from ..isa.spaces import window_base
from ..lanes.warps import Array
from ..machine.address_map import FIRST_CONSTANT, FIRST_PARAMETER, PARAMETER_GUARD
from ..machine.argument_layout import ArgumentLayout, BoundDescriptor, KernelArgument
from ..machine.context import Context
from ..machine.global_memory import ArrayMemory
from ..machine.reached_names import ReachedNames
from ..machine.special_registers import GRID_WORKSPACE
from ..ptx.program import Entry, Variable
from ..source.names import demangle, select_kernels, source_name
from ..util import host_memory
from ..util.architectures import MAX_SHARED, STATIC_SHARED
from ..util.errors import Index3, LaunchError
from ..util.findings import RACES, UNWRITTEN
from ..util.grammar import count_noun
from .executable import Executable, lay_out_variables
from .launch_limits import check_dimensions, count_resident_blocks

#: Default maximum of instructions of a chunk: an endless loop stops within a minute, and a long kernel completes.
STEP_LIMIT = 2_000_000
#: Stack size of a thread in bytes, if the kernel allocates stack memory.
STACK_BYTES = 16 << 10
#: The ``.language`` of tileiras, cuTile's compiler. Its static shared memory has only the limit of dynamic memory.
_TILES = 7
#: Largest local memory of a thread, in bytes.
_MAX_LOCAL = 512 << 10
#: The address of the first function; each takes 16 bytes.
FIRST_FUNCTION = 1 << 54


@dataclass(frozen=True)
class LaunchOptions:
    """A launch: dimensions of three numbers, and parameters as in `ptxcount.count`."""

    grid: Index3
    block: Index3
    arguments: Sequence[KernelArgument]
    dynamic_shared: int = 0
    step_limit: int = STEP_LIMIT
    races: str = RACES[0]
    unwritten: str = UNWRITTEN[0]
    variables: Mapping[str, KernelArgument] | None = None
    #: True to count distinct sectors, and to check global memory for races unless ``races`` is "off".
    distinct: bool = False
    cluster: Index3 | None = None
    #: Names of the arguments in errors.
    names: Sequence[str] = ()


@dataclass
class _Memories:
    """The memories of a launch, and the addresses of parameters, variables and functions by name."""

    #: Global memory.
    memory: ArrayMemory
    constants: ArrayMemory = field(default_factory=lambda: ArrayMemory(FIRST_CONSTANT))
    parameters: ArrayMemory = field(default_factory=lambda: ArrayMemory(FIRST_PARAMETER, guard=PARAMETER_GUARD))
    descriptors: dict[int, BoundDescriptor] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    #: Declared bytes of ``shared`` memory per block, and of ``local`` memory per thread.
    sizes: dict[str, int] = field(default_factory=dict)


def make_context(kernel: Executable, options: LaunchOptions) -> Context:
    """Check a launch and lay out its memory.

    Raises `LaunchError` for wrong dimensions, policies, arguments or values of variables, or for more memory than any
    GPU allows. Raises `MemoryError` for larger variables than this machine holds.
    """
    if kernel.entry.has_grid_of_clusters and kernel.entry.cluster and len(options.grid) == 3:  # the grid is in clusters
        x, y, z = (extent * blocks for extent, blocks in zip(options.grid, kernel.entry.cluster, strict=True))
        options = replace(options, grid=(x, y, z))
    _check_policies(options)
    cluster = check_dimensions(kernel.entry, options.grid, options.block, options.cluster)
    memories = _Memories(ArrayMemory(distinct=options.distinct))
    layout = ArgumentLayout(memories.memory, memories.descriptors)
    _place_variables(kernel, options, memories, layout)
    shared_size = _check_sizes(kernel, options.dynamic_shared, memories.sizes)
    parameters = _pack_parameters(kernel.entry, options.arguments, layout, options.names)
    for name, content in parameters.items():
        memories.symbols[name] = memories.parameters.add(np.frombuffer(content, np.uint8), name)
    resident_blocks = count_resident_blocks(prod(options.block), shared_size - kernel.reserved)
    is_cooperative = kernel.syncs_grid and prod(options.grid) <= resident_blocks
    if is_cooperative:
        memories.symbols[GRID_WORKSPACE] = memories.memory.add(np.zeros(256, np.uint8), GRID_WORKSPACE)
    return Context(
        grid=options.grid,
        block=options.block,
        memory=memories.memory,
        constants=memories.constants,
        parameters=memories.parameters,
        symbols=memories.symbols,
        shared_names=frozenset(variable.name for variable in kernel.variables if variable.space == "shared"),
        unavailable={variable.name: variable.problem for variable in kernel.variables if variable.problem},
        shared_size=shared_size,
        shared_unit=kernel.shared_unit,
        local_size=memories.sizes["local"],
        step_limit=options.step_limit,
        races=options.races,
        unwritten=options.unwritten,
        counters=LaunchCounters(prod(options.grid) * prod(options.block)),
        descriptors=memories.descriptors,
        cluster=cluster,
        has_clusters=bool(options.cluster or kernel.entry.cluster),
        has_concurrent_blocks=is_cooperative or prod(cluster) > 1,
        max_resident_blocks=resident_blocks if kernel.syncs_grid and not is_cooperative else 0,
        reserved_shared_bytes=kernel.reserved,
        dynamic_note=_describe_dynamic_shared(kernel, options.dynamic_shared),
        dynamic_size=options.dynamic_shared,
        checks_global_races=_watch_races(kernel, options, memories, parameters),
        ordered_lanes=kernel.ordered_lanes,
        polls=kernel.polls,
        scans=kernel.scans,
    )


def _check_policies(options: LaunchOptions) -> None:
    for option, policy, allowed in (("races", options.races, RACES), ("unwritten", options.unwritten, UNWRITTEN)):
        if policy not in allowed:
            raise LaunchError(f"{option} is {policy!r}; allowed are {', '.join(allowed)}")


def _place_variables(kernel: Executable, options: LaunchOptions, memories: _Memories, layout: ArgumentLayout) -> None:
    """Place a kernel's variables in memory; give addresses to its functions and to stack memory."""
    host_memory.require(sum(v.size or 0 for v in kernel.variables if v.space in ("global", "const")))
    values = _match_variables(kernel.variables, options.variables or {})
    usable = [variable for variable in kernel.variables if not variable.problem]
    symbols, sizes = memories.symbols, memories.sizes
    for space, start in (("shared", kernel.reserved), ("local", 0)):
        in_space = (variable for variable in usable if variable.space == space)
        addresses, sizes[space] = lay_out_variables(in_space, start)
        symbols |= addresses
    functions = {name: FIRST_FUNCTION + 16 * index for index, name in enumerate(kernel.functions)}
    symbols |= functions
    initial_contents: list[tuple[Variable, Array]] = []
    for variable in usable:
        if variable.space in ("shared", "local"):
            continue
        value = values.get(variable.name)
        if value is None:
            content = _make_initial_content(variable)
            initial_contents.append((variable, content))
        else:
            content = _convert_variable(variable, value, layout)
        unset = value is None and variable.space == "const" and not variable.initial
        target = memories.constants if variable.space == "const" else memories.memory
        symbols[variable.name] = target.add(content, _find_plain_name(variable.name), unset=unset)
    generic_addresses = {v.name: window_base(v.space) + symbols.get(v.name, 0) for v in usable} | functions
    for variable, content in initial_contents:
        _write_addresses(variable, content, generic_addresses)
    if kernel.allocates_stack:
        symbols[STACK.name] = -(-sizes["local"] // 16) * 16
        sizes["local"] = symbols[STACK.name] + STACK_BYTES


def _find_plain_name(name: str) -> str:
    """Return the C++ name of a variable; the mangled name if it has template arguments."""
    return name if "<" in demangle(name) else source_name(name)


def _make_initial_content(variable: Variable) -> Array:
    """Return a variable's bytes at the start of a launch: its initial value, then zeros."""
    content = np.zeros(variable.size or 0, np.uint8)
    content[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
    content.flags.writeable = variable.space != "const"
    return content


def _check_sizes(kernel: Executable, dynamic_shared: int, sizes: Mapping[str, int]) -> int:
    """Return the bytes of shared memory per block; raise `LaunchError` for too much or negative shared memory.

    Also raise it for too much local memory.
    """
    shared_size = sizes["shared"] + dynamic_shared
    own_bytes = shared_size - kernel.reserved
    static_bytes = sizes["shared"] - kernel.reserved
    if static_bytes > STATIC_SHARED and kernel.entry.language != _TILES:
        given = f"a block has {static_bytes} bytes of static shared memory"
        remedy = "use smaller arrays, or dynamic shared memory (extern __shared__, --dynamic-shared)"
        raise LaunchError(f"{given}; at most {STATIC_SHARED} are allowed; {remedy}")
    if dynamic_shared < 0:
        raise LaunchError(f"dynamic shared memory is {dynamic_shared} bytes; it must be 0 or more")
    if own_bytes > MAX_SHARED:
        raise LaunchError(
            f"a block has {own_bytes} bytes of shared memory; at most {MAX_SHARED} are allowed; use smaller tiles"
        )
    if sizes["local"] > _MAX_LOCAL:
        given = f"a thread has {sizes['local']} bytes of local memory"
        raise LaunchError(f"{given}; at most {_MAX_LOCAL} are allowed; use smaller arrays")
    return shared_size


def _describe_dynamic_shared(kernel: Executable, size: int) -> str:
    if all(variable.size is not None for variable in kernel.variables if not variable.problem):
        return ""
    return (
        f", {size} of them dynamic (--dynamic-shared)"
        if size
        else "; give dynamic shared memory: --dynamic-shared or dynamic_shared="
    )


def _watch_races(
    kernel: Executable, options: LaunchOptions, memories: _Memories, parameters: Mapping[str, bytes]
) -> bool:
    """Begin to check the arrays that the kernel accesses; tell if there are arrays to check for races."""
    if not options.distinct or options.races == "off":
        return False
    memory, bound_descriptors = memories.memory, memories.descriptors.values()
    reached_arrays = ReachedNames(*(_resolve_arrays(names, memory, parameters) for names in kernel.reached_names))
    textures = {bound.base for bound in bound_descriptors if bound.descriptor.is_texture}
    reached_arrays.noncoherent_loads.update(_find_arrays(textures, memory))
    return memory.watch_races(reached_arrays, strict=options.races == "strict")


def _resolve_arrays(names: set[str], memory: ArrayMemory, parameters: Mapping[str, bytes]) -> set[str]:
    """Return the plain names of variables among ``names``, and the names of the arrays that parameters point to."""
    contents = [parameters[name] for name in names & parameters.keys()]
    words = b"".join(content[: len(content) // 8 * 8] for content in contents)  # without an incomplete last word
    return {_find_plain_name(name) for name in names} | _find_arrays({*np.frombuffer(words, np.int64).tolist()}, memory)


def _find_arrays(addresses: Set[int], memory: ArrayMemory) -> set[str]:
    """Return the names of the arrays that contain addresses."""
    arrays = memory.arrays()
    return {name for base, size, name in arrays if any(base <= place < base + size for place in addresses)}


def _match_variables(
    variables: Sequence[Variable], variable_values: Mapping[str, KernelArgument]
) -> dict[str, KernelArgument]:
    """Return the values by the names of the variables in the PTX; each given name must match one variable."""
    contents: dict[str, KernelArgument] = {}
    names = [variable.name for variable in variables if variable.space in ("const", "global")]
    for name, value in variable_values.items():
        matches = select_kernels(names, name)
        if len(matches) != 1:
            raise LaunchError(_describe_mismatch(name, matches, names))
        contents[matches[0]] = value
    return contents


def _describe_mismatch(name: str, matches: Sequence[str], names: Sequence[str]) -> str:
    candidates = matches or names
    texts = [_find_plain_name(candidate) for candidate in candidates]
    shown = ", ".join(texts if len({*texts}) == len(texts) else candidates)
    if matches:
        return f"{len(matches)} variables of the kernel end in ::{name}; name one of {shown}"
    if names:
        return f"the kernel uses no variable {name!r}; name one of {shown}"
    return f"the kernel uses no variable; remove {name!r}"


def _convert_variable(variable: Variable, value: KernelArgument, layout: ArgumentLayout) -> Array:
    """Return a value as memory: a copy for a constant, else a given array itself, so stores change the array."""
    name = f"the value of variable {_find_plain_name(variable.name)}"
    if not isinstance(value, np.ndarray):
        value = np.frombuffer(bytearray(layout.encode_argument(value, name)), np.uint8)
    if variable.size not in (None, value.nbytes):  # None: another file defines the variable
        raise LaunchError(f"{name} has {count_noun(value.nbytes, 'byte')}; it must have {variable.size}")
    if variable.space != "const":
        if not value.flags.c_contiguous:
            raise LaunchError(f"{name} is not C-contiguous; pass a copy")
        return value
    array = np.array(value, order="C")
    array.flags.writeable = False
    return array


def _write_addresses(variable: Variable, content: Array, generic_addresses: Mapping[str, int]) -> None:
    """Write the addresses in the initial value of a variable into its ``content``, which may be read-only."""
    writeable = content.flags.writeable
    content.flags.writeable = True
    for offset, name, addend in variable.addresses:
        address = (generic_addresses[name] + addend) % 2**64 if name in generic_addresses else 0
        content[offset : offset + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
    content.flags.writeable = writeable


def _pack_parameters(
    entry: Entry, args: Sequence[KernelArgument], layout: ArgumentLayout, names: Sequence[str]
) -> dict[str, bytes]:
    kernel = demangle(entry.name)
    if len(args) != len(entry.parameters):
        raise LaunchError(f"{kernel} takes {count_noun(len(entry.parameters), 'argument')}, not {len(args)}")
    contents: dict[str, bytes] = {}
    for index, (parameter, argument) in enumerate(zip(entry.parameters, args, strict=True)):
        name = names[index] if names else f"argument {index}"
        content = layout.encode_argument(argument, name)
        if len(content) != parameter.size:
            size = count_noun(len(content), "byte")
            raise LaunchError(f"{name} has {size}; {kernel} takes {parameter.size}; pass another type")
        contents[parameter.name] = content
    return contents
