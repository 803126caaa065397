"""What is measured: the launches over which asv's classes run.

Kernels are named here, not read from the installed package: asv runs these benchmarks on old commits too, and the axes
must be today's for all of them. To measure a new kernel, add its name to the sweeps of its operation.
"""

from __future__ import annotations

from kernelwatch.asv.sweep import Sweep
from kernelwatch.instrument import matrix_copy

#: To add a flag set: one row, the literal text that a user would type.
FLAG_SETS = ("-Xptxas -O3", "-Xptxas -O0", "-Xptxas -dlcm=cg")
_DEFAULT = FLAG_SETS[:1]

#: Without -O0: the copies of matrix size show what it costs.
COPY_FLAG_SETS = (FLAG_SETS[0], FLAG_SETS[2])

#: The architectures that kernels are compiled for on any machine.
ARCHS = ("sm_80", "sm_90", "sm_100")

#: One dtype of each item size. Kernels that move data are measured with these only.
MOVED = ("int8", "float16", "float32", "float64", "complex128")

#: rows x columns.
MATRICES = ("256x256", "1024x1024", "2048x2048", "4096x4096", "8192x8192", "12800x12800", "5003x2999")

#: Those that fit in the L2 cache of the GPUs of interest, input and output together, at 4 bytes an element.
MATRICES_IN_L2 = MATRICES[:3]

#: Those whose transposes take up to about 20 µs. For these, the time of a single launch is measured too.
SHORT_MATRICES = MATRICES[:2]

#: The matrix whose transposes are compared with copies of as many elements.
LARGEST = "12800x12800"
LARGEST_ELEMENTS = 12800 * 12800

OFFSETS = (0, 1, 2, 4, 8, 16, 31, 32)
STRIDES = (1, 2, 3, 4, 8, 16, 32)

#: rows x inner x columns of products; the first in every dtype.
_PRODUCTS = ("1024x1024x1024", "2048x2048x2048", "4096x4096x4096")

#: Elements that are copied or added where counts are taken.
ELEMENTS = 1 << 16

#: The transposes that are measured at every shape.
TRANSPOSES = (
    "transpose_read_coalesced",
    "transpose_write_coalesced",
    "transpose_read_write_coalesced",
    "transpose_read_write_coalesced_unpadded",
    "transpose_vectorized",
)

#: The steps of a lecture on transposes, slowest first, and what comes after them. Those that no other sweep has are
#: measured on its matrix only: some are slow on purpose.
_LECTURE = (
    "transpose_row_per_thread",
    "transpose_write_coalesced",
    "transpose_tile_load_transposed",
    "transpose_read_write_coalesced_unpadded",
    "transpose_read_write_coalesced",
    "transpose_vectorized",
)
_LECTURE_ALONE = ("transpose_row_per_thread", "transpose_tile_load_transposed")
_SERIAL = ("transpose_serial",)

_ADDITIONS = ("add_coalesced", "add_uncoalesced")

#: Products -> title and kernels.
_MULTIPLIED = {
    "MatrixProduct": ("Matrix product", ("matmul_coalesced", "matmul_uncoalesced", "matmul_tiled")),
    "TransposedProduct": ("Product with a transposed matrix", ("matmul_corner_turning",)),
}

#: Why a copy of small elements stays far below the peak even where nothing is lost.
_SMALL = (
    "A thread moves one element, so as many elements take as many requests whatever their size: one of a warp asks for "
    "32 bytes of int8, for 128 of float32 and for 512 of complex128. A plain copy moves 16 bytes a thread."
)

TIMED = (
    Sweep(
        "OffsetCopy",
        "Offset copy, DRAM",
        {"offset": OFFSETS, "size": (1 << 26,), "dtype": MOVED, "flags": COPY_FLAG_SETS},
        module="time_copy",
        kernel="offset_copy",
        shown={"offset": 1, "dtype": "float32"},
        note="A warp whose bytes do not begin at a sector touches one sector more: float32 takes 5 sectors for 4. "
        "So 20 % would be lost if no cache kept the shared one. Caches do: what is lost is less. " + _SMALL,
    ),
    Sweep(
        "MatrixSizedCopy",
        "Copies of 12800 x 12800 elements, DRAM",
        {
            "copy": ("offset_copy offset=0", "offset_copy offset=1", "stride_copy stride=1", "stride_copy stride=2"),
            "dtype": ("float32",),
            "flags": FLAG_SETS,
        },
        module="time_copy",
        fixed={"size": LARGEST_ELEMENTS},
    ),
    # 2^22: at the largest stride and dtype its arrays take 2 GiB each.
    Sweep(
        "StrideCopy",
        "Stride copy, DRAM",
        {"stride": STRIDES, "size": (1 << 22,), "dtype": MOVED, "flags": COPY_FLAG_SETS},
        module="time_copy",
        kernel="stride_copy",
        shown={"stride": 2, "dtype": "float32"},
        note="Whole sectors of 32 bytes are moved whatever is used of them: half is lost at stride 2, until each "
        "element takes a sector of its own. " + _SMALL,
    ),
    Sweep(
        "Transpose",
        "Transpose, DRAM",
        {"kernel": TRANSPOSES, "rows x columns": MATRICES, "dtype": MOVED, "flags": FLAG_SETS},
        module="time_transpose",
        shown={"kernel": "transpose_read_write_coalesced", "rows x columns": LARGEST, "dtype": "float32"},
        note="A plain copy of as many bytes, 16 a thread, is what a transpose could reach.",
    ),
    Sweep(
        "TransposeInL2",
        "Transpose, L2 cache",
        {"kernel": TRANSPOSES, "rows x columns": MATRICES_IN_L2, "dtype": ("float32",), "flags": _DEFAULT},
        module="time_transpose",
        in_l2=True,
    ),
    Sweep(
        "IsolatedTranspose",
        "Transpose, DRAM",
        {"kernel": TRANSPOSES, "rows x columns": SHORT_MATRICES, "dtype": MOVED, "flags": _DEFAULT},
        module="time_transpose",
        isolated=True,
    ),
    Sweep(
        "LectureTranspose",
        "Transpose step by step, DRAM",
        {"kernel": _LECTURE, "rows x columns": ("2880x2880",), "dtype": ("float64",), "flags": _DEFAULT},
        module="time_transpose",
        note="The steps of a lecture on its matrix, up to a tile without padding, and what comes after.",
    ),
    Sweep(
        "SerialTranspose",
        "Transpose by one thread, L2 cache",
        {"kernel": _SERIAL, "rows x columns": ("256x256",), "dtype": ("float64",), "flags": _DEFAULT},
        module="time_transpose",
        note="The step before the first: nothing is done at the same time.",
        in_l2=True,  # or else a sample is one thread's way through four times the L2
    ),
    Sweep(
        "Add",
        "Sum of two vectors, DRAM",
        {"kernel": _ADDITIONS, "size": (1 << 26,), "dtype": ("float32", "float64"), "flags": _DEFAULT},
        shown={"dtype": "float32"},
    ),
    *(
        sweep
        for name, (title, kernels) in _MULTIPLIED.items()
        for sweep in (
            Sweep(
                name,
                f"{title}, DRAM",
                {"kernel": kernels, "rows x inner x columns": _PRODUCTS, "dtype": ("float32",), "flags": _DEFAULT},
                note="Useful bytes are those of three matrices, however often they are read. A copy of as many bytes, "
                "the control, is not the ceiling here: arithmetic is, so GFLOP/s tell more.",
            ),
            Sweep(
                f"{name}InOtherDtypes",
                f"{title} in other dtypes, DRAM",
                {
                    "kernel": kernels,
                    "rows x inner x columns": _PRODUCTS[:1],
                    "dtype": ("float16", "float64"),
                    "flags": _DEFAULT,
                },
            ),
        )
    ),
    Sweep(
        "RowSum",
        "Sums of rows, DRAM",
        {"rows x columns": ("4096x4096", "5003x2999"), "dtype": ("float32", "float64"), "flags": _DEFAULT},
        kernel="row_sum",
    ),
    Sweep(
        "Gather",
        "Elements by their indices, DRAM",
        {"size": (1 << 24,), "dtype": ("float32", "float64"), "flags": _DEFAULT},
        kernel="gather",
        note="Useful bytes are those of elements, indices and results. Each element takes a sector.",
    ),
    Sweep(
        "Histogram",
        "Counts of values, DRAM",
        {"size": (1 << 26,), "bins": (64,), "dtype": ("int8",), "flags": _DEFAULT},
        kernel="histogram",
        note="Atomics in shared memory are the ceiling here, not what a copy of as many bytes takes.",
    ),
)

#: What kernels that move as many bytes are compared with.
COPY = Sweep(
    "DeviceCopy",
    "Device copy, DRAM",
    {"rows x columns": MATRICES, "dtype": MOVED},
    module="time_copy",
    kernel=matrix_copy.NAME,
    shown={"rows x columns": LARGEST, "dtype": "float32"},
)

COUNTED = (
    Sweep(
        "OffsetCopy",
        "Offset copy",
        {"dtype": MOVED, "offset": OFFSETS, "flags": FLAG_SETS},
        kernel="offset_copy",
        fixed={"size": ELEMENTS},
        shown={"offset": 1, "dtype": "float32"},
        shared=False,
    ),
    Sweep(
        "StrideCopy",
        "Stride copy",
        {"dtype": MOVED, "stride": STRIDES, "flags": FLAG_SETS},
        kernel="stride_copy",
        fixed={"size": ELEMENTS},
        shown={"stride": 2, "dtype": "float32"},
        shared=False,
    ),
    # Rows of 700 elements begin at any place of a sector, and tiles stick out at both edges.
    Sweep(
        "Transpose",
        "Transpose",
        {"kernel": TRANSPOSES, "dtype": MOVED, "flags": FLAG_SETS},
        fixed={"rows": 1000, "columns": 700},
        shown={"dtype": "float32"},
        note="Fewer are better. Rows of 700 elements begin anywhere in a sector.",
    ),
    # The other steps are counted above, so that a change is reported once.
    Sweep(
        "LectureTranspose",
        "Transpose step by step",
        {"kernel": _LECTURE_ALONE, "dtype": MOVED, "flags": _DEFAULT},
        fixed={"rows": 1000, "columns": 700},
        shown={"dtype": "float32"},
    ),
    # One thread executes everything: a small matrix.
    Sweep(
        "SerialTranspose",
        "Transpose by one thread",
        {"kernel": _SERIAL, "dtype": MOVED, "flags": _DEFAULT},
        fixed={"rows": 40, "columns": 30},
        shown={"dtype": "float32"},
        shared=False,
    ),
    Sweep(
        "Add",
        "Sum of two vectors",
        {"kernel": _ADDITIONS, "dtype": ("float32", "float64"), "flags": _DEFAULT},
        fixed={"size": ELEMENTS},
        shown={"dtype": "float32"},
        shared=False,
    ),
    *(
        Sweep(
            name,
            title,
            {"kernel": kernels, "dtype": ("float16", "float32", "float64"), "flags": _DEFAULT},
            fixed={"rows": 96, "inner": 64, "columns": 128},
            shown={"dtype": "float32"},
        )
        for name, (title, kernels) in _MULTIPLIED.items()
    ),
    Sweep(
        "RowSum",
        "Sums of rows",
        {"dtype": ("float32", "float64"), "flags": _DEFAULT},
        kernel="row_sum",
        fixed={"rows": 100, "columns": 700},
        shared=False,
    ),
    Sweep(
        "Gather",
        "Elements by their indices",
        {"dtype": ("float32", "float64"), "flags": _DEFAULT},
        kernel="gather",
        fixed={"size": ELEMENTS},
        note="Indices are random: each element takes a sector of its own, where 4 or 8 sectors would hold a request's.",
        shared=False,
    ),
    Sweep(
        "Histogram",
        "Counts of values",
        {"dtype": ("int8",), "flags": _DEFAULT},
        kernel="histogram",
        fixed={"size": ELEMENTS, "bins": 64},
    ),
)

#: Of what is counted; the first in the order that they had before.
_KERNELS = dict.fromkeys(
    (
        *("offset_copy", "stride_copy", *TRANSPOSES, *_SERIAL),
        *(str(kernel) for sweep in COUNTED for kernel in sweep.axes.get("kernel", [sweep.kernel])),
    )
)

COMPILED = Sweep(
    "Compiled",
    "Compiled",
    {
        "kernel": tuple(_KERNELS),
        "dtype": tuple(dict.fromkeys(dtype for sweep in COUNTED for dtype in sweep.axes["dtype"])),
        "flags": FLAG_SETS,
        "arch": ARCHS,
    },
    module="track_compiled",
    shown={"dtype": "float32", "arch": "sm_90"},
)
