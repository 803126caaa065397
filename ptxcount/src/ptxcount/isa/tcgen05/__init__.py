"""The tensor cores of Blackwell, ``tcgen05``, and their memory (PTX ISA, "TensorCore 5th Generation Family").

All is done at once, in the order in which threads ask for it. No chip was asked: layouts are those of the PTX ISA,
and `shifts` names its source.
"""

from . import allocation, completion, copies, products, register_copies, shifts  # noqa: F401
