"""A kernel: its source, its arguments, its geometry, its compilation and its launch."""

from kernelwatch.kernel.arguments import Array as Array
from kernelwatch.kernel.arguments import Shape as Shape
from kernelwatch.kernel.kernel import Kernel as Kernel
from kernelwatch.kernel.launch import Launch as Launch
