// Enough of CUDA to compile the random kernels as host C++: a host thread per CUDA thread, block after block.
// C++20's headers of atomics, barriers and threads would take g++ a second more.
#include <algorithm>
#include <cmath>
#include <pthread.h>
#include <thread>
#include <vector>

using std::max;
using std::min;

struct Index { unsigned x; };
inline thread_local Index threadIdx, blockIdx;

#define __global__
#define __shared__ static

constexpr unsigned THREADS = 64;
inline pthread_barrier_t everyone;
inline const int ready = pthread_barrier_init(&everyone, nullptr, THREADS);
inline void __syncthreads() { pthread_barrier_wait(&everyone); }

inline unsigned lanes[THREADS];
inline unsigned exchange(unsigned value, int source, bool inside)
{
    lanes[threadIdx.x] = value;
    __syncthreads();
    const unsigned result = inside ? lanes[threadIdx.x / 32 * 32 + source] : value;
    __syncthreads();
    return result;
}
inline unsigned __shfl_xor_sync(unsigned, unsigned v, unsigned mask, int width)
{
    const int lane = threadIdx.x % 32, source = lane ^ mask;
    return exchange(v, source, source < (lane / width + 1) * width);
}
inline unsigned __shfl_up_sync(unsigned, unsigned v, unsigned delta, int width)
{
    const int lane = threadIdx.x % 32, source = lane - int(delta);
    return exchange(v, source, source >= lane / width * width);
}
inline unsigned __shfl_down_sync(unsigned, unsigned v, unsigned delta, int width)
{
    const int lane = threadIdx.x % 32, source = lane + int(delta);
    return exchange(v, source, source < (lane / width + 1) * width);
}

inline void atomicAdd(unsigned* at, unsigned v) { __atomic_fetch_add(at, v, __ATOMIC_SEQ_CST); }

inline unsigned __umulhi(unsigned a, unsigned b) { return (static_cast<unsigned long long>(a) * b) >> 32; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (static_cast<unsigned __int128>(a) * b) >> 64;
}
inline int __popc(unsigned a) { return __builtin_popcount(a); }
inline int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
inline int __clz(unsigned a) { return a ? __builtin_clz(a) : 32; }
inline unsigned __brev(unsigned a)
{
    unsigned r = 0;
    for (int k = 0; k < 32; ++k) r |= (a >> k & 1u) << (31 - k);
    return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s)
{
    return ((static_cast<unsigned long long>(hi) << 32 | lo) << (s & 31u)) >> 32;
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s)
{
    return (static_cast<unsigned long long>(hi) << 32 | lo) >> (s & 31u);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s)
{
    const unsigned long long pool = static_cast<unsigned long long>(b) << 32 | a;
    unsigned r = 0;
    for (int k = 0; k < 4; ++k) r |= unsigned(pool >> 8 * (s >> 4 * k & 7u) & 255u) << 8 * k;
    return r;
}

// CUDA orders zeros by their sign; the C library may return either.
#define fminf(a, b) lesser<float>(a, b)
#define fmaxf(a, b) greater<float>(a, b)
#define fmin(a, b) lesser<double>(a, b)
#define fmax(a, b) greater<double>(a, b)
template <typename T> T lesser(T a, T b)
{
    if (a != a || b != b) return a != a ? b : a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}
template <typename T> T greater(T a, T b)
{
    if (a != a || b != b) return a != a ? b : a;
    if (a == b) return std::signbit(a) ? b : a;
    return a < b ? b : a;
}

template <typename Kernel, typename... Arguments> void launch(Kernel kernel, unsigned blocks, Arguments... arguments)
{
    for (unsigned block = 0; block < blocks; ++block) {
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < THREADS; ++t) threads.emplace_back([=] {
            threadIdx.x = t;
            blockIdx.x = block;
            kernel(arguments...);
        });
        for (auto& thread : threads) thread.join();
    }
}
