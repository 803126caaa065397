"""The tensor cores of Blackwell, ``tcgen05``, and their memory (PTX ISA, "TensorCore 5th Generation Family").

All instructions complete immediately, in the order in which threads issue them. They were not tested on a GPU: layouts
are those of the PTX ISA, and `copies` names the other sources.
"""

from . import allocation, copies, products, register_copies  # noqa: F401
