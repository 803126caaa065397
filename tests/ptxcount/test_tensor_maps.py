"""Tensor maps and bulk copies: outcomes of an H200, conditions of the driver API, maps that a kernel changes."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxcount
from experiments import condition_launches
from experiments.condition_cases import CONDITIONS, Condition
from ptxcount.util.errors import LaunchError, UnsupportedInstructionError
from tests.ptxcount import sources
from tests.ptxcount.snippets import execute_snippet, module

#: Outcomes of a GPU by group and name, each with a hash of the resulting bytes.
RECORD = Path(__file__).parents[1] / "data" / "conditions-h200.json"


@cache
def _compile() -> str:
    return sources.compile_to_ptx(condition_launches.SOURCE, arch=condition_launches.ARCH)


#: Parts of conditions that the GPU rejects -> part of ptxcount's error. A condition is written as "group: name".
REFUSALS = {
    "global_address = 8": "must be a multiple of 16", "rank = 0": "has 2 coordinates; it needs 1",
    "rank = 2": "the shape (0, 64, 64)", "rank = 7": "rank is 7; allowed are 0 to 4",
    "box_dim 0 = 3": "it must have a multiple of 16",
    "box_dim 1 = 0": "box is (0, 16)", "global_dim 0 = 0": "the shape (64, 0)",
    "element_stride 1 = 0": "element strides are (0, 1)",
    "element_stride 1 = 9": "element strides are (9, 1)", "interleave_layout = 1": "an interleaved layout needs 3 to 5",
    "swizzle_mode = 1, box (16": "at most 32, the span of", "fill_mode = 1": "only floats can be filled with NaN",
    "'offset'": "the tensor is at address", "'extents'": "the tensor ", "'pitches'": " has a stride", "'box'": "box ",
    "'steps'": "element strides are (", "'interleave': 16}": "an interleaved layout needs 3", "'fill'": "only floats",
    "'corners'": "corner", "'channels'": " channels", "'pixels'": " pixels; allowed are 1 to 1024",
    "im2col (64, 64) plain": "im2col needs 3", "at (1, 0)": "starts at byte 4 of a row (coordinate 1)",
    "at (3, 2)": "starts at byte 12 of a row (coordinate 3)", "box beyond: store_": "the tile store starts at",
    "box beyond: reduce_": "the tile store starts at", "map of ": "the tensor map is for",
    "at (1, 0, 0, 0)": "(coordinate 1)", "at (2, 0, 0, 0)": "(coordinate 2)",
    "im2col: im2col": "the column begins at", "im2col: store_im2col at": "the tile store starts at",
    "im2col: store_im2col corners": "the column store", " to 64": "shared address 64; it must be a multiple of 128",
    " to 1040": "shared address 1040; it must be a multiple of 128", "bytes, shared 262144": " bytes of shared memory",
    "4096 bytes, shared 16128": " bytes of shared memory", "global 1073741824": "in no array: 1073725440 bytes after ",
    "barrier + 4": "8 bytes at", "bulk_load: 8 bytes": "8 bytes; it must be a multiple of 16",
    "bulk_load: 40 bytes": "40 bytes; it must be a multiple of 16",
    "bulk_prefetch: 64 bytes, shared 0, global 8": "a prefetch at",
    "bulk_reduce: 64 bytes, shared 0, global 8": "is not a multiple of 16",
}  # fmt: skip
#: Launches that are undefined in PTX and that the GPU runs -> part of ptxcount's error.
STRICTER = {
    "bulk_store: 8 bytes": "an H200 stores 0 of them", "bulk_store: 40 bytes": "an H200 stores 32 of them",
    "bulk_reduce: 8 bytes": "an H200 stores 0 of them", "bulk_reduce: 24 bytes": "an H200 stores 16 of them",
    "offsets (256, 0)": "an H200 drops higher bits", "offsets (65535, 0)": "an H200 drops higher bits",
    "box_dim 0 = 0": "box is (8, 0); give a number from 1 to 256", "box_dim 1 = 257": "box is (257, 16); give a number",
    "global_stride = 264": "a stride of 264 bytes; the stride must be a multiple of 16",
}  # fmt: skip


def find_differences(chosen: Sequence[Condition]) -> list[str]:
    """Return a line for each launch or encoding whose outcome or bytes differ from the record."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))["outcomes"]
    wrong = []
    for condition in chosen:
        outcome, digest = record[condition.group][condition.name]
        verdict, arrays = condition_launches.count_launch(condition, _compile())
        messages = [message for key, message in STRICTER.items() if key in condition.name]
        if outcome == "runs" and not messages:
            is_right = verdict == "runs" and condition_launches.digest_arrays(arrays) == digest
        elif bool(messages) != (outcome == "runs"):
            is_right = False
        else:
            text = f"{condition.group}: {condition.name}"
            messages = messages or [message for key, message in REFUSALS.items() if key in text]
            names_line = "conditions.cu:" in verdict  # an encoding on the host has no line
            is_right = names_line == bool(condition.kernel) and any(message in verdict for message in messages)
        if not is_right:
            wrong.append(f"{condition.name}: {outcome}, here {verdict}")
    return wrong


def test_outcomes_as_on_an_h200() -> None:
    """Of launches that ran in large groups, test a third; `tests/gpu/test_conditions.py` has all."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))["outcomes"]
    places = {(group, name): place for group, outcomes in record.items() for place, name in enumerate(outcomes)}
    assert {(condition.group, condition.name) for condition in CONDITIONS} == places.keys()

    def is_chosen(condition: Condition) -> bool:
        outcomes = record[condition.group]
        is_special = any(words in condition.name for words in (*STRICTER, "NaN"))
        if len(outcomes) < 40 or outcomes[condition.name][0] != "runs" or is_special or not condition.kernel:
            return True
        return places[condition.group, condition.name] % 3 == 0

    wrong = find_differences([condition for condition in CONDITIONS if is_chosen(condition)])
    assert not wrong, "\n".join(wrong)


FLOATS, IMAGES = np.zeros((64, 64), np.float32), np.zeros((2, 6, 7, 8), np.uint32)
COLUMN: dict[str, Any] = {"lower": (0, 0), "upper": (0, 0), "channels": 8, "pixels": 16}
#: Maps that the driver API does not encode (``cuTensorMapEncodeTiled``), and the error.
CONDITIONS_OF_MAPS: list[tuple[type, Any, dict[str, Any], str]] = [
    (ptxcount.TensorMap, FLOATS, {"box": (32,)}, "box is .*a number from 1 to 256 for each axis"),
    (ptxcount.TensorMap, FLOATS, {"box": (4, 32), "swizzle": 48}, "swizzle is 48; allowed are 0, 32, 64, 128"),
    (ptxcount.TensorMap, FLOATS[::-1], {"box": (8, 32)}, r"-256 bytes; the stride must be from 0 to 2\*\*40 - 1"),
    (ptxcount.TensorMap, np.zeros((64, 128), "f4")[:, ::2], {"box": (8, 32)},
     r"strides of \(512, 8\) bytes has no contiguous rows"),
    (ptxcount.TensorMap, FLOATS, {"box": (8, 16), "steps": (1,)}, r"strides are \(1,\); .*each axis of \(64, 64\)"),
    (ptxcount.TensorMap, FLOATS.astype("c16"), {"box": (8, 8)}, "elements have 16 bytes; allowed are 1, 2, 4, 8"),
    (ptxcount.TensorMap, np.zeros((1,) * 6, "f4"), {"box": (8,) * 6}, "tensor has 6 dimensions; allowed are 1 to 5"),
    (ptxcount.TensorMap, FLOATS, {"box": (256, 256)}, r"box \(256, 256\) has 262144 bytes; at most 232448, a block"),
    (ptxcount.Im2colMap, IMAGES, COLUMN | {"upper": (0,)}, r"upper corner is \(0,\); give 2 numbers"),
    (ptxcount.Im2colMap, IMAGES, COLUMN | {"upper": (-6, 0)}, r"no pixel.* between the corners \(0, 0\) and \(-6, 0\)"),
    (ptxcount.Im2colMap, IMAGES, COLUMN | {"channels": 3}, "3 channels of a pixel: a row has 12 bytes; it must have"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "array", "fields", "message"), CONDITIONS_OF_MAPS)
def test_invalid_maps_are_refused(make: type, array: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        make(array, **fields)


#: Changes that make a map out of zeros: of 64 x 64 words (elemtype 2), and a box of 8 rows of 16. Field, axis, value.
#: The rank is the number of dimensions less one. %rd1 is the address of the array, and %rd3 has the bytes of a row.
CHANGES = [
    ("global_address", "", "%rd1"), ("rank", "", "1"), ("box_dim", "0, ", "16"), ("box_dim", "1, ", "8"),
    ("global_dim", "0, ", "64"), ("global_dim", "1, ", "64"), ("global_stride", "0, ", "%rd3"),
    ("element_stride", "0, ", "1"), ("element_stride", "1, ", "1"), ("elemtype", "", "2"),
    ("interleave_layout", "", "0"), ("swizzle_mode", "", "0"), ("fill_mode", "", "0"),
]  # fmt: skip


def _write_changes(changes: Sequence[tuple[str, str, str]]) -> str:
    """Return PTX that changes a map in `p1`, for the array of `p0`, whose rows have 256 bytes.

    The coordinate %r2 is 4, and %r1 the address of shared memory.
    """
    body = "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mov.u64 %rd3, 256; mov.u32 %r1, s; mov.u32 %r2, 4;\n"
    for field, axis, value in changes:
        kind = "b64" if value.startswith("%") else "b32"
        body += f"tensormap.replace.tile.{field}.b1024.{kind} [%rd2], {axis}{value};\n"
    return body


def test_kernel_builds_a_map_from_zeros() -> None:
    """The CUDA guide has such a kernel. A box of zeros from shared memory goes to row 4 and column 4 of ones."""
    body = _write_changes(CHANGES)
    body += "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {%r2, %r2}], [%r1];"
    array, place = np.ones((64, 64), np.uint32), np.zeros(16, np.uint64)
    text = module(body, 2, ".shared .align 1024 .b8 s[2048];")
    counters = execute_snippet(text, [array, place], threads=1, unwritten="off")
    expected = np.ones((64, 64), np.uint32)
    expected[4:12, 4:20] = 0
    np.testing.assert_array_equal(array, expected)
    assert counters.totals()["bulk_store_sectors"] == 8 * 3  # 64 bytes from byte 16 on touch 3 sectors


_TILE_AND_BARRIER = ".reg .b16 %h<2>; .shared .align 1024 .b8 s[1024]; .shared .align 8 .b64 b;"


def test_wrong_number_of_im2col_offsets_is_refused() -> None:
    copy = "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
    body = "mov.b64 %rd1, p0; cvta.param.u64 %rd1, %rd1; mov.u32 %r2, 0; mov.u32 %r1, s; mov.u16 %h1, 0;"
    text = module(f"{body} {copy} [%r1], [%rd1, {{%r2, %r2, %r2, %r2}}], [b], {{%h1}};", 1, _TILE_AND_BARRIER, maps=1)
    with pytest.raises(LaunchError, match=r"tensor map of 4 dimensions has 1 im2col offset; it needs 2"):
        execute_snippet(text, [ptxcount.Im2colMap(IMAGES, **COLUMN)], threads=1)


def test_tensor_map_is_no_texture() -> None:
    """The kernel fetches by the first 8 bytes of a map, as if they were a texture."""
    fetch = "ld.global.u64 %rd4, [%rd2]; tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd4, {%r2, %r2}];"
    text = module(_write_changes(CHANGES) + fetch, 2, ".reg .f32 %f<5>; .shared .b8 s[16];")
    arguments: list[Any] = [np.ones((64, 64), np.uint32), np.zeros(16, np.uint64)]
    with pytest.raises(LaunchError, match=r"is not a texture; pass a ptxcount\.Texture"):
        execute_snippet(text, arguments, threads=1, unwritten="off")


def test_interleaved_map_is_refused() -> None:
    """Interleaving needs three dimensions: the third has one element."""
    third = [("box_dim", "2, ", "1"), ("global_dim", "2, ", "1"), ("global_stride", "1, ", "%rd3")]
    changes = [*CHANGES, ("rank", "", "2"), *third, ("element_stride", "2, ", "1"), ("interleave_layout", "", "1")]
    copy = "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%rd2, {%r2, %r2, %r2}], [%r1];"
    text = module(_write_changes(changes) + copy, 2, ".shared .align 1024 .b8 s[2048];")
    arguments: list[Any] = [np.ones((64, 64), np.uint32), np.zeros(16, np.uint64)]
    with pytest.raises(UnsupportedInstructionError, match="an interleaved layout"):
        execute_snippet(text, arguments, threads=1, unwritten="off")


def test_address_of_a_tensor_map_in_shared_memory_is_refused() -> None:
    """Other threads write there without a barrier, but a copy's read of its map is not checked for races."""
    copy = "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd2, {%r2}], [%r1];"
    body = f"""ld.param.u64 %rd1, [p0]; st.shared.u64 [s], %rd1; mov.u32 %r1, s; mov.u32 %r2, 0;
        cvt.u64.u32 %rd2, %r1; cvta.shared.u64 %rd2, %rd2; {copy}"""
    text = module(body, 1, ".shared .align 128 .b8 s[128];", target="9.0 sm_90")
    with pytest.raises(LaunchError, match="is not a tensor map"):
        execute_snippet(text, [np.zeros(1, np.uint64)], threads=64)
