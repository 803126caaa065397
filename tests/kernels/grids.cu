// Cooperative groups: a grid whose blocks see all earlier writes behind its barrier; tiles of four warps.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

extern "C" __global__ void reversed(int* out, int* between)
{
    auto grid = cooperative_groups::this_grid();
    const unsigned long long i = grid.thread_rank();
    for (int round = 0; round < 3; round++) {
        between[i] = i * (round + 1);
        grid.sync();
        out[i] = between[grid.size() - 1 - i];
        grid.sync();
    }
}

extern "C" __global__ void large_tiles(int* out, const int* in)
{
    auto tile = cooperative_groups::tiled_partition<128>(cooperative_groups::this_thread_block());
    const int sum = cooperative_groups::reduce(tile, in[threadIdx.x], cooperative_groups::plus<int>());
    out[threadIdx.x] = sum + 1000 * tile.shfl(in[threadIdx.x], 5) + 1000000 * tile.meta_group_rank();
}
