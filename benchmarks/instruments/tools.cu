// What the instrument itself launches. ELEMENT is 16 bytes; one element a thread.

// The control beside every time: the widest accesses, perfectly coalesced, of `length` bytes; the last element in part.
extern "C" __global__ void device_copy(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long size, long long length)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long first = index * static_cast<long long>(sizeof(ELEMENT));
    if (first + static_cast<long long>(sizeof(ELEMENT)) <= length) {
        output[index] = input[index];
    } else {
        for (long long byte = first; byte < length; ++byte) {
            reinterpret_cast<char*>(output)[byte] = reinterpret_cast<const char*>(input)[byte];
        }
    }
}

// Reads an array larger than the L2 cache, which then holds nothing else, and nothing that must be written back.
extern "C" __global__ void flush_l2(ELEMENT* __restrict__ never, const ELEMENT* __restrict__ input, long long size)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
        const ELEMENT element = input[index];
        // The array holds no such element, which the compiler cannot know: the load must happen, the store never does.
        if (element.x == -1.0 && element.y == -2.0) {
            never[index] = element;
        }
    }
}
