// Loops that end by the result of an atomic or of a volatile load. ptxas puts a YIELD into them.
#define KERNEL extern "C" __global__ void
#define INDEX const int i = blockIdx.x * blockDim.x + threadIdx.x, warp = i / 32
#define LOOP _Pragma("unroll 1")
#define ENTER INDEX; if (i >= n) return;
// Each thread has a column of 1024 apart; a column's last element is 0.
#define WALK while (atomicExch(&t[k], -1)) k += 1024

KERNEL walk(int* y, int* t, const int* x, int n) { ENTER int k = i; WALK; y[i] = k; }
KERNEL walk_volatile(int* y, volatile int* t, const int* x, int n) { ENTER int k = i; while (t[k]) k += 1024; y[i] = k; }
KERNEL walk_and_more(int* y, int* t, const int* x, int n) { ENTER int k = i; WALK; if (x[i] % 3 == 0) y[i] = k; y[i + n] = x[i + n]; }
KERNEL walk_and_branch(int* y, int* t, const int* x, int n) { ENTER int k = i; WALK; if (x[i] % 3) y[i] = x[k]; else y[i + n] = x[k + 1]; }
KERNEL walk_and_loop(int* y, int* t, const int* x, int n) { ENTER int k = i, s = 0; WALK; LOOP for (int j = i; j < 9 * n && x[j] % 4; j += 1000) s += k; y[i] = s; }
KERNEL walk_and_synchronize(int* y, int* t, const int* x, int n) { ENTER int k = i; WALK; __syncwarp(); y[i] = k; }
KERNEL walk_and_wait(int* y, int* t, const int* x, int n) { INDEX; int k = i; if (i < n) WALK; __syncthreads(); y[i] = k; }
KERNEL walk_if(int* y, int* t, const int* x, int n) { ENTER int k = i; if (x[i] & 1) { WALK; y[i] = k; } y[i + n] = x[i + n]; }
KERNEL walk_or(int* y, int* t, const int* x, int n) { ENTER int k = i; if (x[i] & 1) { WALK; y[i] = k; } else y[i] = x[i + 3 * n]; y[i + n] = x[i + n]; }
KERNEL walk_twice(int* y, int* t, const int* x, int n) { ENTER int k = i; WALK; y[i] = k; k = i; while (atomicExch(&t[k], 0) < 0) k += 1024; y[i + n] = k; }
KERNEL walk_repeatedly(int* y, int* t, const int* x, int n)
{
    ENTER
    LOOP for (int j = 0; j < 3; ++j) { int k = i + 1024 * j; while (atomicOr(&t[k], 0)) k += 1024; y[i + j * n] = k; }
    y[i + 3 * n] = x[i];
}
KERNEL walk_and_break(int* y, int* t, const int* x, int n)
{
    ENTER
    int k = i;
    LOOP for (int j = 0; j < 7; ++j) { if (atomicExch(&t[k], -1) == 0) { y[i] = x[k]; break; } y[i + n] = j; k += 1024; }
    y[i + 2 * n] = k;
}
KERNEL leave_early(int* y, int* t, const int* x, int n) { ENTER int k = i; LOOP while (atomicExch(&t[k], -1)) { if (x[k] > 60) break; k += 1024; } y[i] = k; }
// Eight words of each warp, which four threads want to change.
KERNEL add_by_swap(int* y, int* t, const int* x, int n)
{
    ENTER
    int *place = &t[warp * 8 + i % 8], old = *place, seen;
    do { seen = old; old = atomicCAS(place, seen, seen + x[i] + 1); } while (seen != old);
    y[i] = old;
}
// A hash table for each warp.
#define INSERT(name, leave, rest) \
    KERNEL name(int* y, int* t, const int* x, int n) \
    { \
        ENTER \
        int slot = x[i] % 64; \
        while (true) { \
            const int old = atomicCAS(&t[8192 + warp * 64 + slot], 0, i + 1); \
            if (old == 0) { y[i * 4] = slot; leave; } \
            slot = (slot + 1) % 64; \
        } \
        rest \
    }
INSERT(insert, return, )
INSERT(insert_and_more, break, y[i * 4 + 1] = x[i];)
KERNEL push(int* y, int* t, const int* x, int n) { ENTER int old = t[8192 + warp], seen; do { seen = old; y[i] = seen; old = atomicCAS(&t[8192 + warp], seen, i); } while (old != seen); y[i + n] = old; }
KERNEL take(int* y, int* t, const int* x, int n) { INDEX; for (int k; (k = atomicAdd(&t[8192 + warp], 1)) < 100;) y[warp * 100 + k] = x[warp * 100 + k]; }
KERNEL take_own(int* y, int* t, const int* x, int n) { INDEX; for (int k; (k = atomicAdd(&t[i], x[i] % 7 + 1)) < 150;) y[i + k / 50 * 1024] = x[i]; y[8000 + threadIdx.x] = 1; }
KERNEL lock(int* y, int* t, const int* x, int n)
{
    ENTER
    bool done = false;
    int* place = &t[8192 + warp * 4 + x[i] % 4];
    while (!done)
        if (atomicCAS(place, 0, 1) == 0) { ((volatile int*)y)[warp * 4 + x[i] % 4] += x[i]; __threadfence(); atomicExch(place, 0); done = true; }
    y[i + n] = x[i];
}
KERNEL walk_shared(int* y, int* t, const int* x, int n)
{
    __shared__ int s[1024];
    INDEX;
    for (int j = 0; j < 8; ++j) s[threadIdx.x + j * 128] = t[i + j * 1024];
    __syncthreads();
    int k = threadIdx.x;
    while (atomicExch(&s[k], -1)) k += 128;
    y[i] = k;
}
KERNEL walk_shared_volatile(int* y, int* t, const int* x, int n)
{
    __shared__ volatile int s[1024];
    INDEX;
    for (int j = 0; j < 8; ++j) s[threadIdx.x + j * 128] = t[i + j * 1024];
    __syncthreads();
    int k = threadIdx.x;
    while (s[k]) k += 128;
    y[i] = k;
}
// A YIELD that depends on a branch, on a load's address, on one of several exits; loops inside and outside.
KERNEL control(int* y, int* t, const int* x, int n) { ENTER int k = i, c = 0; LOOP while (c < 2) { if (atomicAdd(&t[k], 1) > 50) { y[k & 2047] = c; ++c; } k = (k + 1024) & 8191; } y[i + 4 * n] = k; }
KERNEL load_next(int* y, int* t, const int* x, int n) { ENTER int k = i, v; LOOP do { v = x[atomicAdd(&t[k], 3) + k % 512]; k += 1024; } while (v > 30 && k < 8000); y[i] = k; }
KERNEL find_either(int* y, int* t, const int* x, int n) { ENTER int k = i; LOOP while (k < 7000 && x[k] > 10 && atomicAdd(&t[k], 1) > 20) { k += 1024; } y[i] = k; y[i + n] = x[i]; }
KERNEL loop_inside(int* y, int* t, const int* x, int n) { ENTER int k = i; LOOP while (atomicAdd(&t[k], 1)) { LOOP for (int b = x[k]; b > 0; b -= 30) y[b * 32 + i % 32] = b; k += 1024; } y[i + 4 * n] = k; }
KERNEL insert_several(int* y, int* t, const int* x, int n)
{
    INDEX;
    LOOP for (int p = threadIdx.x; p < n; p += 128) {
        int slot = x[p] % 64;
        while (atomicCAS(&t[8192 + warp * 64 + slot], 0, p + 1)) slot = (slot + 1) % 64;
        y[p] = slot;
        if (p >= 128) break;
    }
}
KERNEL find_counted(int* y, int* t, const int* x, int n)
{
    ENTER
    for (int k = i; k < 8192; k += 1024) { if (((volatile int*)t)[k] == k % 3 * 20) break; }
    y[i] = n;
}
KERNEL raise_maximum(int* y, int* t, const int* x, int n)
{
    ENTER
    int *place = &t[i % 64 + warp * 64], old = *place, seen;
    do { seen = old; if (seen >= x[i]) break; old = atomicCAS(place, seen, x[i]); } while (seen != old);
    y[i] = old; if (old > 50) y[i + n] = x[i + 1];
}
KERNEL exchange_list(int* y, int* t, const int* x, int n)
{
    ENTER
    int v = i + 1, k = i, steps = 0;
    LOOP while ((v = atomicExch(&t[k], v)) != 0) { k += 1024; if (v > 90) { y[i + 2 * n] = v; break; } ++steps; }
    LOOP for (int j = 0; j < steps; ++j) y[i + j] = x[i + j];
    y[i + 3 * n] = steps;
}
KERNEL insert_shared(int* y, int* t, const int* x, int n)
{
    __shared__ int keys[4][64], counts[4][64];
    INDEX; const int w = threadIdx.x / 32;
    keys[w][i % 32] = keys[w][i % 32 + 32] = counts[w][i % 32] = counts[w][i % 32 + 32] = 0;
    __syncwarp();
    int slot = x[i] % 64;
    while (true) {
        const int old = atomicCAS(&keys[w][slot], 0, x[i] + 1);
        if (old == 0 || old == x[i] + 1) { atomicAdd(&counts[w][slot], 1); break; }
        slot = (slot + 1) % 64;
    }
    y[i * 2] = slot;
    __syncwarp();
    y[i + 4096] = counts[w][i % 32];
}
KERNEL walk_acquire(int* y, int* t, const int* x, int n)
{
    ENTER
    int k = i, v;
    do { asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(v) : "l"(t + k) : "memory"); k += 1024; } while (v);
    y[i] = k;
}
KERNEL walk_several(int* y, int* t, const int* x, int n)
{
    ENTER
    LOOP for (int j = 0; j < x[i] % 3 + 1; ++j) { int k = i + 1024 * j; while (((volatile int*)t)[k]) k += 1024; y[i + j * n] = x[k]; }
}
// Searches that other threads may end. ptxas puts no YIELD where another exit follows in a loop that counts.
#define SEARCH(name, leave, body, rest) \
    KERNEL name(int* y, int* t, const int* x, int n) \
    { \
        INDEX; \
        volatile int* const found = y + warp; \
        for (int k = i; k < 8 * n; k += gridDim.x * blockDim.x) { \
            if (leave) body; \
            if (x[k] % 50 == 7) { *found = 1; body; } \
        } \
        rest \
    }
SEARCH(search_and_return, *found, return, )
SEARCH(search_and_break, *found, break, y[2000 + threadIdx.x] = 1;)
SEARCH(search_alone, x[k] < 0, return, y[3000 + i] = 1;)
