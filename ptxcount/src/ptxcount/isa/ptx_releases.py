"""Instruction forms that PTX releases added from 9.0 on and ptxcount does not know (PTX ISA, "Release Notes")."""

import re
from functools import lru_cache

#: Patterns of the names of such forms, by release. CUDA 13.0 to 13.5 have PTX 9.0 to 9.5.
_NEW_FORMS = {
    "9.1": (r"multimem\.cp\..*",),
    "9.2": (
        r"(add|sub|min|max|neg)\..*[us]8x4",
        r"add\.sat\.([us]16x2|u32)",
        r"st\.async\..*b128",
        r"cp\.async\..*ignore_oob.*",
    ),
    "9.3": (
        r"clmad\..*",
        r"fabric\.(?!submit\.commit_group|wait\.sync_restrict::read$).*",
        r"mbarrier\..*(check_layout|phase_type|layout).*",
        r"multimem\.(st|red)\.async.*",
        r"cp\.async\.bulk\.(weak|relaxed)\..*",
    ),
    "9.4": (
        r"sp(de)?compress\..*",
        r"applypriority\.async\..*",
        r"cvt\..*(ue5m3x2|scaled::n1|pzo).*",
        r"cvt\.rz\..*\.e\dm\dx2\..*",
        r"ld\..*proxy::readonly.*",
        r"(atom|red)\..*noftz.*\.f32",
        r"set\..*[us](8x4|16x2).*",
        r"ldmatrix\..*s8\.s4",
        r".*\.multicast::cluster::32b.*",
        r"cp\.(reduce\.)?async\.bulk\..*(override::\w+|override_attribute|im2col_no_offs::w).*",
        r"cp\.async\..*mbarrier::report::.*",
        r"tcgen05\..*exclusive.*",
        r"tcgen05\.mma\..*(kind::ti16|decompress::lut::b|collector::b::).*",
        r"tcgen05\..*(sync_restrict|spcompress).*",
        r"(add|sub|mul|fma)\..*\.e\dm\dx4.*",
    ),
    "9.5": (
        r"(sin|cos)\..*2pi.*",
        r"fabric\..*",
        r"cp\.async\.bulk\.wait_group\.sync_restrict.*",
        r"tensormap\..*alloc_class.*",
        r"fence\.alias\.sync_restrict.*",
    ),
}


@lru_cache(maxsize=4096)
def explain_release(name: str) -> str:
    """Return "a form of PTX 9.2 that ptxcount does not know" for the name of such a form; empty for all others."""
    for version, patterns in _NEW_FORMS.items():
        if any(re.fullmatch(pattern, name) for pattern in patterns):
            return f"a form of PTX {version} that ptxcount does not know"
    return ""
