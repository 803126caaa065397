"""Instructions between lanes of a warp, with all or some lanes active, as kernels of one warp.

`tests/data/lanes-h200.json` holds the results of an H200; `tests/gpu/test_instructions.py` compares a GPU. A new
operation needs no results: without a GPU its test is skipped; on a GPU it prints the results to add to that file.
"""

from tests.ptxcount.snippets import module

#: Initial value of the output.
UNTOUCHED = 12345
#: Code of a lane, with results in %r3 and %p2. Its number is %r0; %r1 is 100 more, %r2 a third of it, and %p1 is set if
#: %r2 is even.
OPERATIONS = {
    **{
        f"shfl {mode} {b} {c:#x}": f"shfl.sync.{mode}.b32 %r3|%p2, %r1, {b}, {c}, {{mask}};"
        for mode, b, c in [
            ("down", 1, 31), ("down", 8, 31), ("down", 3, 0x181F), ("up", 1, 0), ("up", 8, 0), ("bfly", 1, 31),
            ("bfly", 8, 31), ("bfly", 24, 0x181F), ("idx", 0, 31), ("idx", 12, 31), ("idx", 31, 31), ("idx", 5, 0x181F),
        ]
    },
    **{f"vote {mode}": f"vote.sync.{mode}.pred %p2, %p1, {{mask}};" for mode in ("all", "any", "uni")},
    "vote all of ones": "setp.ge.u32 %p1, %r0, 0; vote.sync.all.pred %p2, %p1, {mask};",
    "vote ballot": "vote.sync.ballot.b32 %r3, %p1, {mask};",
    "activemask": "activemask.b32 %r3;",
    "match any": "match.any.sync.b32 %r3, %r2, {mask};",
    "match all": "match.all.sync.b32 %r3|%p2, %r2, {mask};",
    "match all alike": "mov.u32 %r2, 7; match.all.sync.b32 %r3|%p2, %r2, {mask};",
    **{f"redux {op}": f"redux.sync.{op}.{'b32' if op in ('and', 'or', 'xor') else 's32'} %r3, %r1, {{mask}};"
       for op in ("add", "min", "max", "and", "or", "xor")},
    "redux max u32": "redux.sync.max.u32 %r3, %r1, {mask};",
}  # fmt: skip
#: Code that leaves some lanes active, and the member mask: the active lanes or the whole warp.
GROUPS = {
    "all lanes": ("{operation}", "-1"),
    "the first 8": ("@!%p3 bra END; {operation} END:", "255"),
    "the first 8, full mask": ("@!%p3 bra END; {operation} END:", "-1"),
    "others have left": ("@%p3 bra ON; bra LEFT; ON: {operation}", "255"),
    "others have left, full mask": ("@%p3 bra ON; bra LEFT; ON: {operation}", "-1"),
    "two groups": ("@%p3 bra ON; {other} bra END; ON: {operation} END:", "255"),
}


def text(operation: str, group: str) -> str:
    """Write a kernel in which each lane that has not left stores its result, %r3, and its predicate, %p2."""
    code, mask = GROUPS[group]
    template = OPERATIONS[operation]
    body = code.format(operation=template.replace("{mask}", mask), other=template.replace("{mask}", "-256"))
    return module(
        f"""
        ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 8, %rd1;
        add.u32 %r1, %r0, 100; div.u32 %r2, %r0, 3; and.b32 %r4, %r2, 1; setp.eq.u32 %p1, %r4, 0;
        setp.lt.u32 %p3, %r0, 8; mov.u32 %r3, 999; setp.ne.u32 %p2, %r0, %r0;
        {body}
        selp.u32 %r5, 1, 0, %p2; st.global.v2.u32 [%rd1], {{%r3, %r5}};
        LEFT:
        """,
        1,
    )


CASES = [(operation, group) for operation in OPERATIONS for group in GROUPS]
