// What the instrument itself launches. ELEMENT is 16 bytes.

// The control beside every time: the widest accesses, perfectly coalesced, of `length` bytes, an element a thread; the
// last element in part.
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

// Reads an array larger than the L2 cache, which then holds nothing else, and nothing that must be written back; an
// element a thread.
extern "C" __global__ void flush_l2(ELEMENT* __restrict__ never, const ELEMENT* __restrict__ input, long long size)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
        const ELEMENT element = input[index];
        // Almost never true, which the compiler cannot know: the load must happen, the store hardly ever does.
        if (element.x == -1.0 && element.y == -2.0) {
            never[index] = element;
        }
    }
}

// Compares each of `sets` arrays, `pitch` elements apart, with `expected`, bit for bit. `first` is made the index of the
// first element that differs, if that is lower than what it holds.
extern "C" __global__ void compare(
    unsigned long long* first, const ulonglong2* found, const ulonglong2* expected, long long size, long long sets,
    long long pitch)
{
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; index < size; index += step) {
        const ulonglong2 wanted = expected[index];
        for (long long set = 0; set < sets; ++set) {
            const long long place = set * pitch + index;
            const ulonglong2 held = found[place];
            if (held.x != wanted.x || held.y != wanted.y) {
                atomicMin(first, static_cast<unsigned long long>(place));
            }
        }
    }
}
