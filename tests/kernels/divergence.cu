// Threads of a warp that leave loops and branches at different times. ptxas unrolls loops of constant length; LOOP stays.
#define KERNEL extern "C" __global__ void
#define INDEX const int i = blockIdx.x * blockDim.x + threadIdx.x
#define LOOP _Pragma("unroll 1")

// The code behind a break: threads leave in different iterations.
#define COUNT_FIRST(name, loop) \
    KERNEL name(int* y, int* hits, const int* x, int n) \
    { \
        INDEX; \
        if (i >= n) return; \
        loop for (int k = 0; k < 8; ++k) \
            if (x[8 * i + k] > 60) { atomicAdd(&hits[k], x[8 * i + k]); y[i] = k; break; } \
    }
COUNT_FIRST(count_first_unrolled, )
COUNT_FIRST(count_first, LOOP)
// The same, and code for threads that find nothing.
#define FIND_FIRST(name, loop) \
    KERNEL name(int* y, const int* x, const int* z, int n) \
    { \
        INDEX; \
        if (i >= n) return; \
        loop for (int k = 0; k < 8; ++k) \
            if (x[8 * i + k] > 80) { y[i] = z[8 * i + k]; return; } \
        y[i] = z[i]; \
    }
FIND_FIRST(find_first_unrolled, )
FIND_FIRST(find_first, LOOP)
// The same in a loop over elements.
KERNEL sum_labels(int* y, const int* x, int n)
{
    INDEX;
    LOOP for (int place = i; place < n; place += gridDim.x * blockDim.x) {
        LOOP for (int label = 0; label < 5; ++label)
            if (x[place] % 5 == label) { atomicAdd(&y[label], x[place + n]); break; }
        y[place + n] = x[place + 2 * n];
    }
}
// Threads that return out of a loop over elements.
KERNEL stop_at_zero(int* y, const int* x, int n)
{
    INDEX;
    LOOP for (int k = i; k < 8 * n; k += gridDim.x * blockDim.x) {
        if (x[k] % 5 == 0) { y[i] = -k; return; }
        y[k + n] = x[k];
    }
}
// Several conditions whose threads go to one label.
KERNEL check_all(int* y, const int* x, int n)
{
    INDEX;
    if (i >= n) return;
    if (x[i] % 7 == 0) goto wrong;
    if (x[i + n] % 5 == 0) goto wrong;
    if (x[i + 2 * n] % 3 == 0) goto wrong;
    y[i] = x[i + 3 * n];
    return;
wrong:
    y[i] = -x[i + 4 * n];
}
// One of two conditions, each of which loads.
KERNEL either(int* y, const int* x, int n) { INDEX; if (i < n) if (x[i] % 3 == 0 || x[i + n] % 3 == 0) y[i] = x[i + 2 * n]; }
KERNEL either_or_else(int* y, const int* x, int n) { INDEX; if (i < n) { if (x[i] % 3 == 0 || x[i + n] % 3 == 0) y[i] = x[i + 2 * n]; else y[n + i] = x[i + 3 * n]; } }
KERNEL both_or_else(int* y, const int* x, int n) { INDEX; if (i < n) { if (x[i] % 3 && x[i + n] % 3) y[i] = x[i + 2 * n]; else y[n + i] = x[i + 3 * n]; } }
// Two loops that end together.
#define FIND_PAIR(name, loop) \
    KERNEL name(int* y, const int* x, int n) \
    { \
        INDEX; \
        if (i >= n) return; \
        int a = 0, b = 0; \
        loop for (a = 0; a < 4; ++a) \
            loop for (b = 0; b < 4; ++b) \
                if (x[i + a * n] + x[i + b * n] == 70 + i % 20) goto found; \
        y[i] = -1; \
        return; \
    found: \
        y[i] = x[i + a * n] * x[i + b * n]; \
    }
FIND_PAIR(find_pair_unrolled, )
FIND_PAIR(find_pair, LOOP)
// Cases that fall through.
KERNEL fall_through(int* y, const int* x, int n)
{
    INDEX;
    if (i >= n) return;
    switch (x[i] % 4) {
    case 0: y[i] = x[i + n];
    case 1: y[i + n] = x[i + 2 * n]; break;
    case 2: y[i + 2 * n] = x[i + 3 * n];
    default: y[i + 3 * n] = x[i + 4 * n];
    }
}
// Iterations that threads skip, and a loop with two ends.
KERNEL skip_even(int* y, const int* x, int n)
{
    INDEX;
    if (i >= n) return;
    int total = 0;
    LOOP for (int k = 0; k < 8; ++k) {
        if (x[i + k * n] % 2 == 0) continue;
        total += x[x[i + k * n] % n];
        y[i + k * n] = total;
    }
}
#define FOLLOW(name, loop) \
    KERNEL name(int* y, const int* x, int n) \
    { \
        INDEX; \
        if (i >= n) return; \
        int place = i, steps = 0; \
        loop while (true) { \
            const int next = x[place]; \
            if (next < 10) { y[i] = x[next]; break; } \
            if (++steps == 6) { y[i + n] = x[n + next]; break; } \
            place = next + steps; \
        } \
        y[i + 2 * n] = steps; \
    }
FOLLOW(follow_unrolled, )
FOLLOW(follow, LOOP)
KERNEL search_sorted(int* y, const int* x, const int* z, int n)
{
    INDEX;
    if (i >= n) return;
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (x[middle] == z[i]) { low = middle; break; }
        if (x[middle] < z[i]) low = middle + 1; else high = middle;
    }
    y[i] = x[low < n ? low : n - 1];
}
