// The kernels of the measuring process itself. ELEMENT has 16 bytes.

// Copies `length` bytes, as the control of each time: 16 bytes per thread, perfectly coalesced. The last thread copies
// the remaining bytes one by one.
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

// Reads an array larger than the L2 cache, one element per thread. Then the cache has no other data, and none that must
// be written back.
extern "C" __global__ void flush_l2(ELEMENT* __restrict__ never, const ELEMENT* __restrict__ input, long long size)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
        const ELEMENT element = input[index];
        // The condition keeps the compiler from removing the load. It is almost never true.
        if (element.x == -1.0 && element.y == -2.0) {
            never[index] = element;
        }
    }
}

// Compares `sets` arrays, `pitch` elements apart, with `expected` bit by bit. `first` becomes the lowest index of a
// different element, unless it is lower already.
extern "C" __global__ void compare(
    unsigned long long* first, const ulonglong2* outputs, const ulonglong2* expected, long long size, long long sets,
    long long pitch)
{
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; index < size; index += step) {
        const ulonglong2 expected_element = expected[index];
        for (long long set = 0; set < sets; ++set) {
            const long long position = set * pitch + index;
            const ulonglong2 element = outputs[position];
            if (element.x != expected_element.x || element.y != expected_element.y) {
                atomicMin(first, static_cast<unsigned long long>(position));
            }
        }
    }
}
