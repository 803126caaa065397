// Products, stencils, graphs: the second part of everyday.cu.
KERNEL tiled_product(float* c, const float* a, const float* b, int n)
{
    __shared__ float mine[16][16], other[16][17];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        mine[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0;
        other[y][x] = column < n && k + y < n ? b[(k + y) * n + column] : 0;
        __syncthreads();
        for (int j = 0; j < 16; ++j) sum += mine[y][j] * other[j][x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}
KERNEL byte_product(int* c, const int* a, const int* b, int words)
{
    int sum = 0;
    for (int k = 0; k < words; ++k) sum = __dp4a(a[blockIdx.x * words + k], b[threadIdx.x * words + k], sum);
    c[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
KERNEL pipelined_copy(float4* y, const float4* x, int n)
{
    __shared__ float4 stage[2][32];
    for (int k = 0; k <= n; ++k) {
        if (k < n) __pipeline_memcpy_async(&stage[k % 2][threadIdx.x], x + k * 32 + threadIdx.x, 16, k % 3 == 2 ? 16 : 0);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        if (k) y[(k - 1) * 32 + threadIdx.x] = stage[(k - 1) % 2][31 - threadIdx.x];
        __syncthreads();
    }
}
KERNEL attention(float* y, const float* q, const float* k, const float* v, int keys, int width)  // one warp a query
{
    float sum = 0, top = -CUDART_INF_F, out = 0;
    for (int j = 0; j < keys; ++j) {
        const float score = warp_sum(q[blockIdx.x * width + threadIdx.x] * k[j * width + threadIdx.x]) * rsqrtf(width);
        const float next = fmaxf(top, score), shrink = expf(top - next), weight = expf(score - next);
        sum = sum * shrink + weight;
        out = out * shrink + weight * v[j * width + threadIdx.x];
        top = next;
    }
    y[blockIdx.x * width + threadIdx.x] = out / sum;
}
KERNEL heat(float* y, const float* x, int rows, int columns)
{
    __shared__ float tile[10][34];
    const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 340; i += 256) {
        const int row = min(max((int)blockIdx.y * 8 + i / 34 - 1, 0), rows - 1), column = min(max((int)blockIdx.x * 32 + i % 34 - 1, 0), columns - 1);
        tile[i / 34][i % 34] = x[row * columns + column];
    }
    __syncthreads();
    const int a = threadIdx.y + 1, b = threadIdx.x + 1;
    if (r < rows && c < columns) y[r * columns + c] = 0.5f * tile[a][b] + 0.125f * (tile[a - 1][b] + tile[a + 1][b] + tile[a][b - 1] + tile[a][b + 1]);
}
KERNEL sparse_product(float* y, const float* value, const int* column, const int* start, const float* x, int rows)
{
    INDEX;
    if (i >= rows) return;
    float sum = 0;
    for (int k = start[i]; k < start[i + 1]; ++k) sum += value[k] * x[column[k]];
    y[i] = sum;
}
KERNEL breadth_first(int* distance, int* changed, const int* edges, int n, int level)
{
    INDEX;
    if (i < n && distance[edges[2 * i]] == level && atomicCAS(distance + edges[2 * i + 1], -1, level + 1) == -1) *changed = 1;
}
KERNEL bodies(float3* force, const float4* body, int n)
{
    __shared__ float4 tile[64];
    INDEX;
    const float4 me = body[i];
    float3 f = {0, 0, 0};
    for (int first = 0; first < n; first += 64) {
        tile[threadIdx.x] = body[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 64; ++j) {
            const float x = tile[j].x - me.x, y = tile[j].y - me.y, z = tile[j].z - me.z;
            const float inverse = rsqrtf(x * x + y * y + z * z + 0.01f), weight = tile[j].w * inverse * inverse * inverse;
            f.x += weight * x; f.y += weight * y; f.z += weight * z;
        }
        __syncthreads();
    }
    force[i] = f;
}
KERNEL monte_carlo(unsigned* inside, int rounds, unsigned seed)
{
    unsigned state = seed + 7919 * (blockIdx.x * blockDim.x + threadIdx.x), hits = 0;
    for (int k = 0; k < rounds; ++k) {
        float at[2];
        for (int d = 0; d < 2; ++d) { state ^= state << 13; state ^= state >> 17; state ^= state << 5; at[d] = state * 2.3283064e-10f; }
        hits += at[0] * at[0] + at[1] * at[1] < 1;
    }
    atomicAdd(inside, hits);
}
KERNEL locked_sum(volatile int* total, int* lock, const int* x)
{
    if (threadIdx.x) return;
    while (atomicCAS(lock, 0, 1)) { }
    *total = *total + x[blockIdx.x];
    __threadfence();
    atomicExch(lock, 0);
}
KERNEL produced_and_consumed(int* y, const int* x, int rounds)  // one warp fills what the other empties
{
    __shared__ int slot[32];
    const int lane = threadIdx.x % 32;
    for (int k = 0; k < rounds; ++k)
        if (threadIdx.x < 32) {
            if (k) asm volatile("bar.sync 2, 64;" ::: "memory");
            slot[lane] = x[k * 32 + lane] * 2;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            y[k * 32 + lane] = slot[31 - lane];
            if (k + 1 < rounds) asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
}
KERNEL half_atomics(__half* h, __half2* pair, __nv_bfloat162* b, const __half* x) { atomicAdd(h, x[threadIdx.x]); atomicAdd(pair, __half2half2(x[threadIdx.x])); atomicAdd(b, __float2bfloat162_rn(1)); }
KERNEL timed(long long* y, const int* x) { const long long began = clock64(); y[1 + threadIdx.x] = x[threadIdx.x]; if (threadIdx.x == 0) y[0] = clock64() - began; }
