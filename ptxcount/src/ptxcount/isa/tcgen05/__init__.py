"""The tensor cores of Blackwell, ``tcgen05``, and their memory (PTX ISA, "TensorCore 5th Generation Family").

All instructions complete immediately, in the order in which threads issue them. They were not tested on a GPU: layouts
are those of the PTX ISA, and `shifts` names its source.
"""

from . import allocation, completion, copies, products, register_copies, shifts  # noqa: F401
