// Addresses of shared memory, and blocks of a cluster.
#pragma once

using u32 = unsigned int;
using u64 = unsigned long long;
struct alignas(64) Map { u64 opaque[16]; };

__device__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

__device__ u32 rank()
{
    u32 r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ u32 mapped(const void* p, u32 to)
{
    u32 a;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(shared_address(p)), "r"(to));
    return a;
}

__device__ void meet() { asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory"); }
