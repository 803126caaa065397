// Kernels that end their context, or hang: the next measurement must succeed.

// Writes outside all memory.
extern "C" __global__ void offset_copy_illegal_address(
    ELEMENT* output, const ELEMENT* input, long long size, long long offset)
{
    output[size << 30] = input[offset];
}

// Waits for a value that no thread writes.
extern "C" __global__ void offset_copy_endless(
    ELEMENT* output, const ELEMENT* input, long long size, long long offset)
{
    const volatile long long* place = reinterpret_cast<const volatile long long*>(output);
    while (*place != 0x0123456789abcdef + size) {
    }
}
