// Products of one warp by wmma, in every layout, from global and from shared memory: tests/ptxcount/test_matrices.py.
#include <mma.h>
using namespace nvcuda;

#define PRODUCT(NAME, T, FRAGMENT, TC, M, N, K, A_LAYOUT, B_LAYOUT, C_LAYOUT)                                          \
    extern "C" __global__ void NAME(TC* d, const T* a, const T* b, const TC* c, int lda, int ldb, int ldc)             \
    {                                                                                                                  \
        wmma::fragment<wmma::matrix_a, M, N, K, FRAGMENT, wmma::A_LAYOUT> left;                                        \
        wmma::fragment<wmma::matrix_b, M, N, K, FRAGMENT, wmma::B_LAYOUT> right;                                       \
        wmma::fragment<wmma::accumulator, M, N, K, TC> sum;                                                            \
        __shared__ __align__(128) T staged[M * K];                                                                     \
        for (int i = threadIdx.x; i < M * K; i += 32) staged[i] = a[i];                                                \
        __syncwarp();                                                                                                  \
        wmma::load_matrix_sync(left, staged, lda);                                                                     \
        wmma::load_matrix_sync(right, b, ldb);                                                                         \
        wmma::load_matrix_sync(sum, c, ldc, wmma::C_LAYOUT);                                                           \
        wmma::mma_sync(sum, left, right, sum);                                                                         \
        wmma::store_matrix_sync(d, sum, ldc, wmma::C_LAYOUT);                                                          \
    }

PRODUCT(half_rcr, half, half, float, 16, 16, 16, row_major, col_major, mem_row_major)
PRODUCT(half_crc, half, half, float, 16, 16, 16, col_major, row_major, mem_col_major)
PRODUCT(half_half, half, half, half, 16, 16, 16, col_major, col_major, mem_col_major)
PRODUCT(half_tall, half, half, float, 32, 8, 16, row_major, row_major, mem_row_major)
PRODUCT(half_wide, half, half, float, 8, 32, 16, row_major, col_major, mem_col_major)
PRODUCT(bytes_rcr, signed char, signed char, int, 16, 16, 16, row_major, col_major, mem_row_major)
PRODUCT(bytes_crc, signed char, signed char, int, 16, 16, 16, col_major, row_major, mem_col_major)
PRODUCT(tf32_rrr, float, wmma::precision::tf32, float, 16, 16, 8, row_major, row_major, mem_row_major)
PRODUCT(double_rcr, double, double, double, 8, 8, 4, row_major, col_major, mem_row_major)

extern "C" __global__ void rows(unsigned* out, const unsigned* in)
{
    __shared__ __align__(16) unsigned tile[128];
    for (int i = threadIdx.x; i < 128; i += 32) tile[i] = in[i];
    __syncwarp();
    unsigned where = (unsigned)__cvta_generic_to_shared(tile + 4 * threadIdx.x), r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(where) : "memory");
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4], {%0, %1, %2, %3};"
                 :: "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(where) : "memory");
    __syncwarp();
    for (int i = threadIdx.x; i < 128; i += 32) out[i] = tile[i];
}
