"""What a kernel is: its operation, its source, its arguments, its geometry; and how it is built and launched."""

from __future__ import annotations

from kernelwatch.kernel.kernel import Kernel as Kernel
from kernelwatch.kernel.launch import Launch as Launch
from kernelwatch.kernel.operation import Array as Array
from kernelwatch.kernel.operation import Operation as Operation
from kernelwatch.kernel.operation import Shape as Shape
