"""``clusterlaunchcontrol``: failed requests, whose mbarrier completes, and kernels that continue without them."""

from __future__ import annotations

import numpy as np
import pytest

import ptxcount
from ptxcount.util.errors import KernelFaultError, MisalignedError, OutOfBoundsError
from tests.ptxcount.snippets import module

_REQUEST = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
#: A block adds 1 to its row, then requests the work of further blocks until a request fails.
_BODY = """
ld.param.u64 %rd1, [p0]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r0, 0;
@!%p1 mbarrier.init.shared.b64 [bar], 1;
bar.sync 0; {meet}
WORK: mad.wide.u32 %rd2, %r1, 128, %rd1; mad.wide.u32 %rd2, %r0, 4, %rd2; red.global.add.u32 [%rd2], 1;
@%p1 bra WAIT;
{request}.b128 [response], [bar];
mbarrier.arrive.expect_tx.shared.b64 _, [bar], {expected};
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
ld.shared.b128 %q0, [response];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0;
@%p3 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r1, %r2, %r3, _}}, %q0;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r4, %q0;
@%p3 bra WORK;
{meet}
"""
_REGISTERS = ".reg .b128 %q0; .shared .align 16 .b8 response[16]; .shared .align 8 .b64 bar;"
_MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


@pytest.mark.parametrize(("multicast", "cluster"), [("", 1), ("", 2), (".multicast::cluster::all", 2)])
def test_failed_requests_are_a_finding(multicast: str, cluster: int) -> None:
    body = _BODY.format(request=_REQUEST + multicast, expected=16, meet=_MEET if cluster > 1 else "")
    if multicast:  # the first block asks for all, the others only wait
        ask = body.index(_REQUEST)
        body = body[:ask] + "mov.u32 %r5, %cluster_ctarank; setp.eq.u32 %p4, %r5, 0;\n@%p4 " + body[ask:]
    out = np.zeros((4, 32), np.uint32)
    counters = ptxcount.count(module(body, 1, _REGISTERS), None, 4, 32, [out], cluster=cluster)
    assert (out == 1).all()
    times = 4 // cluster if multicast else 4
    assert [(finding.code, finding.times) for finding in counters.findings] == [("failed-cancel", times)]


@pytest.mark.parametrize(("base", "offset", "error", "message"), [
    ("response", 8, MisalignedError, "a response at shared address 8: a multiple of 16 is needed"),
    ("300000", 0, OutOfBoundsError, "16 bytes at shared address 300000; the block has 8"),
])  # fmt: skip
def test_misplaced_response_is_refused(base: str, offset: int, error: type[KernelFaultError], message: str) -> None:
    body = f"mbarrier.init.shared.b64 [bar], 1; mov.u32 %r1, {base}; {_REQUEST}.b128 [%r1+{offset}], [bar];"
    with pytest.raises(error, match=message):
        ptxcount.count(module(body, 0, _REGISTERS), None, 1, 1, [])
