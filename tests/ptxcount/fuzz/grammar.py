"""Random small CUDA kernels from a grammar; a seed determines the kernel.

Kernels read tables and compute with 32- and 64-bit integers, floats and doubles. They diverge in branches and loops,
use shared memory and shuffles, and add to bins atomically. No kernel has undefined behaviour, so every run must give
the same bits. Shifts and divisors are bounded, and floats become integers only within range. NaN and signed zeros are
stored as +0.
"""

import random
from collections.abc import Callable

#: Threads per block, elements of an input table (both powers of two), bins, and blocks of a launch.
BLOCK, TABLE, BINS, BLOCKS = 64, 256, 32, 3
SIGNATURE = (
    "(unsigned* out, unsigned long long* wide, float* real, double* precise, unsigned* bins, const unsigned* table, "
    "const unsigned char* bytes, const float* reals, const double* doubles, int n)"
)
_UNSIGNED = [
    "({u} + {u})", "({u} - {u})", "({u} * {u})", "({u} & {u})", "({u} | {u})", "({u} ^ {u})", "~{u}",
    "({u} / ({u} | 1u))", "({u} % ({u} | 1u))", "({u} << ({u} & 31u))", "({u} >> ({u} & 31u))",
    "min({u}, {u})", "max({u}, {u})", "({c} ? {u} : {u})", "__umulhi({u}, {u})", "unsigned(__popc({u}))",
    "unsigned(__clz({u}))", "__brev({u})", "__funnelshift_l({u}, {u}, {u})", "__funnelshift_r({u}, {u}, {u})",
    "unsigned(int({u}) >> ({u} & 31u))", "unsigned(int({u}) / int({u} >> 1 | 1u))",
    "unsigned(int({u}) % int({u} >> 1 | 1u))", "unsigned(min(int({u}), int({u})))", "unsigned(max(int({u}), int({u})))",
    "unsigned({w} >> ({u} & 63u))", "unsigned(fminf(fmaxf({f}, 0.0f), 1.0e6f))",
    "unsigned(fmin(fmax({d}, 0.0), 1.0e9))",
    "unsigned(static_cast<signed char>({u}))", "unsigned(static_cast<short>({u}))",
    "unsigned(static_cast<unsigned char>({u}))",
    "table[{u} % {TABLE}u]", "unsigned(bytes[{u} % {TABLE}u])", "__byte_perm({u}, {u}, {u} & 0x7777u)",
]  # fmt: skip
_WIDE = [
    "({w} + {w})", "({w} - {w})", "({w} * {w})", "({w} ^ {w})", "({w} & {w})", "({w} / ({w} | 1ull))",
    "({w} % ({w} | 1ull))", "({w} << ({u} & 63u))", "({w} >> ({u} & 63u))",
    "(static_cast<unsigned long long>({u}) * {u})",
    "static_cast<unsigned long long>(static_cast<long long>(int({u})) * int({u}))", "({c} ? {w} : {w})",
    "__umul64hi({w}, {w})", "static_cast<unsigned long long>(__popcll({w}))",
    "static_cast<unsigned long long>(static_cast<long long>({w}) >> ({u} & 63u))",
]  # fmt: skip
_FLOAT = [
    "({f} + {f})", "({f} - {f})", "({f} * {f})", "({f} / {f})", "fmaf({f}, {f}, {f})", "fminf({f}, {f})",
    "fmaxf({f}, {f})", "sqrtf(fabsf({f}))", "(- {f})", "({c} ? {f} : {f})", "float({u})", "float(int({u}))",
    "float({w})",
    "float({d})", "reals[{u} % {TABLE}u]", "floorf({f})", "truncf({f})", "rintf({f})",
]  # fmt: skip
_DOUBLE = [
    "({d} + {d})", "({d} - {d})", "({d} * {d})", "({d} / {d})", "fma({d}, {d}, {d})", "fmin({d}, {d})",
    "fmax({d}, {d})", "sqrt(fabs({d}))", "(- {d})", "({c} ? {d} : {d})", "double({u})", "double({w})", "double({f})",
    "doubles[{u} % {TABLE}u]",
]  # fmt: skip
_CONDITION = [
    "({u} < {u})", "({u} >= {u})", "({u} == {u})", "(int({u}) < int({u}))", "(int({u}) <= int({u}))", "({w} > {w})",
    "({f} < {f})", "({f} >= {f})", "({f} != {f})", "({d} <= {d})", "({c} && {c})", "({c} || {c})", "!{c}",
    "(({u} & 1u) != 0)",
]  # fmt: skip
_RULES = {"u": _UNSIGNED, "w": _WIDE, "f": _FLOAT, "d": _DOUBLE, "c": _CONDITION}
_TYPES = {"u": "unsigned", "w": "unsigned long long", "f": "float", "d": "double"}


class _Writer:
    """The writer of one kernel."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lines: list[str] = []
        self._loops = 0
        self._budget = 14

    def kernel(self, name: str) -> str:
        self._lines = [f'extern "C" __global__ void {name}{SIGNATURE}', "{"]
        self._write(1, f"__shared__ unsigned shared_words[{BLOCK}];")
        self._write(1, f"const unsigned t = threadIdx.x, b = blockIdx.x, i = b * {BLOCK}u + t;")
        for kind, type_name in _TYPES.items():
            for place in range(3):
                self._write(1, f"{type_name} {kind}{place} = {self._start(kind)};")
        for _ in range(self._random.randint(4, 8)):
            self._random.choice([self._statement, self._statement, self._exchange, self._shuffle])(1)
        self._write(1, "if (i < unsigned(n)) {")
        self._write(2, "out[i] = u0 ^ u1 * 3u ^ u2 * 5u;")
        self._write(2, "wide[i] = w0 ^ w1 * 3u ^ w2 * 5u;")
        self._write(2, "const float f = f0 < f1 ? f2 : f0; real[i] = f == f && f != 0.0f ? f : 0.0f;")
        self._write(2, "const double d = d0 < d1 ? d2 : d0; precise[i] = d == d && d != 0.0 ? d : 0.0;")
        self._write(1, "}")
        return "\n".join([*self._lines, "}"])

    def _write(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _leaf(self, kind: str) -> str:
        choose = self._random.choice
        if kind == "c":
            return f"({self._leaf('u')} < {self._leaf('u')})"
        has_variables = len(self._lines) > 4 + 3 * len(_TYPES)  # behind the lines of the head and the declarations
        variables = [f"{kind}{place}" for place in range(3)] if has_variables else []
        constants = {
            "u": ["0u", "1u", "7u", "0x80000000u", "0xffffffffu", f"{self._random.getrandbits(32)}u", "t", "b", "i"],
            "w": ["3ull", f"{self._random.getrandbits(64)}ull", "static_cast<unsigned long long>(i)"],
            "f": ["0.5f", "-1.0f", "3.0f", f"{self._random.uniform(-100, 100):.6f}f", "float(t)"],
            "d": ["0.25", "-2.0", f"{self._random.uniform(-1e6, 1e6):.9f}", "double(i)"],
        }
        return choose(variables * 3 + constants[kind])

    def _start(self, kind: str) -> str:
        """Return an initial value that differs between threads."""
        place = f"(i * {2 * self._random.randrange(TABLE) + 1}u) % {TABLE}u"
        word = f"table[{place}]"
        values = {"u": word, "w": f"({word} * 0x9e3779b97f4a7c15ull)", "f": f"reals[{place}]", "d": f"doubles[{place}]"}
        return self._random.choice([values[kind], self._expression(kind, 2)])

    def _expression(self, kind: str, depth: int) -> str:
        if depth == 0 or self._random.random() < 0.15:
            return self._leaf(kind)
        rule = self._random.choice(_RULES[kind]).replace("{TABLE}", str(TABLE))
        parts = rule.split("{")
        text = parts[0]
        for part in parts[1:]:
            text += self._expression(part[0], depth - 1) + part[2:]
        return text

    def _assignment(self, depth: int) -> None:
        kind = self._random.choice("uuuwwffd")
        target = f"{kind}{self._random.randrange(3)}"
        self._write(depth, f"{target} = {self._expression(kind, self._random.randint(1, 3))};")

    def _statement(self, depth: int) -> None:
        self._budget -= 1
        simple: list[Callable[[int], None]] = [self._assignment, self._assignment, self._atomic]
        nested: list[Callable[[int], None]] = [self._branch, self._loop, self._switch]
        allowed = simple + (nested * 2 if depth < 4 and self._budget > 0 else [])
        self._random.choice(allowed)(depth)

    def _body(self, depth: int) -> None:
        for _ in range(self._random.randint(1, 3)):
            self._statement(depth)

    def _branch(self, depth: int) -> None:
        self._write(depth, f"if ({self._expression('c', 2)}) {{")
        self._body(depth + 1)
        if self._random.random() < 0.6:
            self._write(depth, "} else {")
            self._body(depth + 1)
        self._write(depth, "}")

    def _loop(self, depth: int) -> None:
        self._loops += 1
        counter = f"k{self._loops}"
        self._write(
            depth, f"for (unsigned {counter} = 0; {counter} < ({self._expression('u', 1)}) % 6u; ++{counter}) {{"
        )
        if self._random.random() < 0.5:
            self._write(depth + 1, f"if ({self._expression('c', 1)}) {self._random.choice(['break', 'continue'])};")
        self._body(depth + 1)
        self._write(depth + 1, f"if ({counter} > 40u) break;")
        self._write(depth, "}")

    def _switch(self, depth: int) -> None:
        self._write(depth, f"switch (({self._expression('u', 1)}) % 5u) {{")
        for case in range(3):
            self._write(depth, f"case {case}u:")
            self._body(depth + 1)
            if self._random.random() < 0.7:
                self._write(depth + 1, "break;")
        self._write(depth, "default:")
        self._assignment(depth + 1)
        self._write(depth, "}")

    def _atomic(self, depth: int) -> None:
        # Only additions, which commute. The header of atomicSub negates a signed integer, which may overflow.
        place, value = self._expression("u", 1), self._expression("u", 1)
        self._write(depth, f"atomicAdd(&bins[{place} % {BINS}u], {self._random.choice(['', '0u - '])}{value});")

    def _exchange(self, depth: int) -> None:
        odd = 2 * self._random.randrange(16) + 1
        self._write(depth, f"shared_words[(t * {odd}u + {self._random.randrange(BLOCK)}u) % {BLOCK}u] = u0;")
        self._write(depth, "__syncthreads();")
        self._write(depth, f"u1 ^= shared_words[({self._expression('u', 2)}) % {BLOCK}u];")
        self._write(depth, "__syncthreads();")

    def _shuffle(self, depth: int) -> None:
        mode, lane = self._random.choice(["xor", "up", "down"]), self._random.randrange(1, 32)
        width = self._random.choice([8, 16, 32])
        self._write(depth, f"u2 += __shfl_{mode}_sync(0xffffffffu, u1, {lane % width}u, {width});")


def kernel(seed: int, name: str) -> str:
    return _Writer(seed).kernel(name)


def name(seed: int) -> str:
    return f"fuzz_{seed}"


def module(seeds: list[int]) -> str:
    return "\n\n".join(kernel(seed, name(seed)) for seed in seeds) + "\n"
