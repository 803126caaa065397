"""Instruction forms that PTX releases added from 9.0 on (PTX ISA, "Release Notes")."""

import re
from functools import lru_cache
from typing import NamedTuple


class ReleasedForm(NamedTuple):
    """A form: an example of a name, and the pattern of all its names."""

    example: str
    pattern: str
    is_supported: bool = False


#: Forms by release. CUDA 13.0 to 13.5 have PTX 9.0 to 9.5.
RELEASED_FORMS: dict[str, tuple[ReleasedForm, ...]] = {
    "9.0": (),
    "9.1": (
        ReleasedForm("ld.volatile.local.u32", r"(ld|st)\.volatile\.local\b.*", is_supported=True),
        ReleasedForm("cvt.rn.satfinite.e2m3x2.f16x2", r"cvt\..*\.e\dm\dx2\.b?f16x2", is_supported=True),
        ReleasedForm("cvt.rn.satfinite.s2f6x2.f32", r"cvt\..*\bs2f6x2\b.*", is_supported=True),
        ReleasedForm("multimem.cp.async.bulk.global.shared::cta.bulk_group", r"multimem\.cp\..*"),
    ),
    "9.2": (
        ReleasedForm("add.u8x4", r"(add|sub|min|max|neg)\..*[us]8x4"),
        ReleasedForm("add.sat.u16x2", r"add\.sat\.([us]16x2|u32)"),
        ReleasedForm("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b128", r"st\.async\..*b128"),
        ReleasedForm(
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob", r"cp\.async\..*ignore_oob.*"
        ),
        ReleasedForm("cvt.rn.bf16x2.e2m3x2", r"cvt\..*bf16x2\.e\dm\dx2", is_supported=True),
    ),
    "9.3": (
        ReleasedForm("clmad.lo.u64", r"clmad\..*"),
        ReleasedForm("fabric.submit", r"fabric\.(?!submit\.commit_group|wait\.sync_restrict::read$).*"),
        ReleasedForm("mbarrier.check_layout.b64", r"mbarrier\..*(check_layout|phase_type|layout).*"),
        ReleasedForm("multimem.st.async.b32", r"multimem\.(st|red)\.async.*"),
        ReleasedForm("cp.async.bulk.weak.global.shared::cta.bulk_group", r"cp\.async\.bulk\.(weak|relaxed)\..*"),
    ),
    "9.4": (
        ReleasedForm("spcompress.b32", r"sp(de)?compress\..*"),
        ReleasedForm("applypriority.async.bulk.global", r"applypriority\.async\..*"),
        ReleasedForm("cvt.rn.ue5m3x2.f32", r"cvt\..*(ue5m3x2|scaled::n1|pzo).*"),
        ReleasedForm("cvt.rz.satfinite.e4m3x2.f32", r"cvt\.rz\..*\.e\dm\dx2\..*"),
        ReleasedForm("ld.proxy::readonly.global.u32", r"ld\..*proxy::readonly.*"),
        ReleasedForm("atom.add.noftz.global.f32", r"(atom|red)\..*noftz.*\.f32"),
        ReleasedForm("set.lt.u8x4", r"set\..*[us](8x4|16x2).*"),
        ReleasedForm("ldmatrix.sync.aligned.m8n16.x1.shared.s8.s4", r"ldmatrix\..*s8\.s4"),
        ReleasedForm("prefetch.global.L1::32B.valid_addr", r"prefetch\..*valid_addr.*", is_supported=True),
        ReleasedForm("mbarrier.arrive.multicast::cluster::32b.shared::cluster.b64", r".*\.multicast::cluster::32b.*"),
        ReleasedForm(
            "cp.async.bulk.tensor.2d.shared::cta.global.tile.override::global_address.mbarrier::complete_tx::bytes",
            r"cp\.(reduce\.)?async\.bulk\..*(override::\w+|override_attribute|im2col_no_offs::w).*",
        ),
        ReleasedForm(
            "cp.async.bulk.prefetch.L2.L2::evict_last.global",
            r"cp\.async\.bulk\.prefetch\..*evict.*",
            is_supported=True,
        ),
        ReleasedForm(
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.mbarrier::report::validity::per_16bytes::80",
            r"cp\.async\..*mbarrier::report::.*",
        ),
        ReleasedForm("tcgen05.alloc.exclusive.cta_group::1.sync.aligned.shared::cta.b32", r"tcgen05\..*exclusive.*"),
        ReleasedForm(
            "tcgen05.mma.cta_group::1.kind::ti16", r"tcgen05\.mma\..*(kind::ti16|decompress::lut::b|collector::b::).*"
        ),
        ReleasedForm(
            "tcgen05.commit.cta_group::1.sync_restrict::shared::read::mma::a.mbarrier::arrive::one.b64",
            r"tcgen05\..*(sync_restrict|spcompress).*",
        ),
        ReleasedForm("add.rn.e4m3x4.e4m3x4", r"(add|sub|mul|fma)\..*\.e\dm\dx4.*"),
    ),
    "9.5": (
        ReleasedForm("sin.approx.ftz.2pi.f32", r"(sin|cos)\..*2pi.*"),
        ReleasedForm("fabric.submit.commit_group", r"fabric\..*"),
        ReleasedForm(
            "cp.async.bulk.wait_group.sync_restrict::proxy::async", r"cp\.async\.bulk\.wait_group\.sync_restrict.*"
        ),
        ReleasedForm("tensormap.query.alloc_class_large.global.b1024", r"tensormap\..*alloc_class.*"),
        ReleasedForm("fence.alias.sync_restrict::read.release.sys", r"fence\.alias\.sync_restrict.*"),
    ),
}


@lru_cache(maxsize=4096)
def explain_release(name: str) -> str:
    """Return "a form of PTX 9.2 that ptxcount does not know" for the name of such a form; empty for all others."""
    for version, forms in RELEASED_FORMS.items():
        if any(re.fullmatch(form.pattern, name) for form in forms if not form.is_supported):
            return f"a form of PTX {version} that ptxcount does not know"
    return ""
