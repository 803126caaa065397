// Loads of shared memory in loops with two branches back, behind branches, and of neighbouring variables.
#define KERNEL extern "C" __global__ void __launch_bounds__(128)
#define INDEX const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t
#define FILL(size) \
    __shared__ int s[size]; \
    for (int k = t; k < size; k += blockDim.x) s[k] = x[(i + k) % n]; \
    __syncthreads()

// The merge path of two halves of s: a binary search that goes on in two places.
KERNEL search_diagonal(int* y, const int* x, int n)
{
    INDEX;
    FILL(512);
    int step = 64, place = 128, turns = 0;
    while (true) {
        step = (step + 1) / 2;
        ++turns;
        if (s[place & 255] % 64 > s[256 + (t + 255 - place & 255)] % 64) {
            if (s[place - 1 & 255] % 64 <= s[256 + (t + 256 - place & 255)] % 64 || turns > 40) break;
            place -= step;
        } else {
            place += step;
        }
    }
    y[i] = place;
}
// Words that some threads skip; their addresses are no multiple of 8.
KERNEL sum_remainder(int* y, const int* x, int n)
{
    INDEX;
    FILL(512);
    const int count = x[i] % 4, place = 3 * t + n % 4;
    int total = 0;
    if (count > 0) {
        total = s[place];
        if (count > 1) {
            total += s[place + 1] * 3;
            if (count > 2) total += s[place + 2] * 5;
        }
    }
    y[i] = total;
}
// Two variables that all threads load together, and two that an exact division keeps apart.
KERNEL normalize(int* y, const int* x, int n)
{
    INDEX;
    __shared__ float mean, scale, least, most;
    if (t == 0) {
        mean = x[i % n];
        scale = x[(i + 1) % n];
        least = x[(i + 2) % n];
        most = x[(i + 3) % n];
    }
    __syncthreads();
    y[i] = (x[i] - mean) * scale;
    __syncthreads();
    float share = x[i] / least;
    if (share > 2) {
        for (int k = 1; k < x[i] % 16; ++k) share += 1.0f / k;
    }
    y[i + n] = share / most;
}
