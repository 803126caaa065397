// Atomics on halves of words, and in shared memory on floats and 64 bits, which are loops of compare-and-swap in machine
// code; and indexed constant memory: one warp each. tests/ptxcount/narrow.py has the launches, tests/data/narrow-h200.csv the counters of an H200.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define G extern "C" __global__ void
#define I const int i = threadIdx.x
#define STAGE(T) __shared__ T s[64]; I; s[i] = x[i]; s[i + 32] = x[i + 32]; __syncwarp()
#define BACK __syncwarp(); x[i] = s[i]; x[i + 32] = s[i + 32]
typedef unsigned short u16;
typedef unsigned long long u64;

G red_f16(__half* x, const int* at, const __half* v) { I; atomicAdd(x + at[i], v[i]); }
G atom_f16(__half* x, const int* at, const __half* v, __half* out) { I; out[i] = atomicAdd(x + at[i], v[i]); }
G red_bf16(__nv_bfloat16* x, const int* at, const __nv_bfloat16* v) { I; atomicAdd(x + at[i], v[i]); }
G cas_b16(u16* x, const int* at, const u16* c, const u16* v, u16* out) { I; out[i] = atomicCAS(x + at[i], c[i], v[i]); }
G sh_f16(__half* x, const int* at, const __half* v) { STAGE(__half); atomicAdd(s + at[i], v[i]); BACK; }
G sh_bf16(__nv_bfloat16* x, const int* at, const __nv_bfloat16* v) { STAGE(__nv_bfloat16); atomicAdd(s + at[i], v[i]); BACK; }
G sh_cas(u16* x, const int* at, const u16* c, const u16* v, u16* out) { STAGE(u16); out[i] = atomicCAS(s + at[i], c[i], v[i]); BACK; }

#define LOOP(name, T, op) G name(T* x, const int* at, const T* v) { __shared__ T s[256]; I; \
    for (int k = 0; k < 256; k += 32) s[k + i] = x[k + i]; __syncwarp(); if (at[i] >= 0) op(s + at[i], v[i]); __syncwarp(); \
    for (int k = 0; k < 256; k += 32) x[k + i] = s[k + i]; }
LOOP(loop_f32, float, atomicAdd)
LOOP(loop_f64, double, atomicAdd)
LOOP(loop_u64, u64, atomicAdd)
LOOP(loop_xor, u64, atomicXor)
LOOP(loop_half2, __half2, atomicAdd)
LOOP(swap_u64, u64, atomicExch)
#define COMPARE(p, v) atomicCAS(p, u64(0), v)
LOOP(cas_u64, u64, COMPARE)

struct alignas(16) Wide { u64 low, high; };
#define ASM128(p, action) asm volatile("{.reg .b128 old, one, none; mov.b128 one, {%1, %2}; mov.b128 none, {%3, %3};" action "}" \
    :: "r"(static_cast<unsigned>(__cvta_generic_to_shared(p))), "l"(v.low), "l"(v.high), "l"(0ull) : "memory")
__device__ void exchange(Wide* p, Wide v) { ASM128(p, "atom.shared.exch.b128 old, [%0], one;"); }
__device__ void compare(Wide* p, Wide v) { ASM128(p, "atom.shared.cas.b128 old, [%0], none, one;"); }
LOOP(swap_b128, Wide, exchange)
LOOP(cas_b128, Wide, compare)

struct Table { float words[256]; float2 pairs[64]; float4 quads[64]; };
__constant__ float words[2048];
__constant__ float2 pairs[1024];
__constant__ float4 quads[512];
G byte(unsigned char* out, const int* at) { I; out[i] = reinterpret_cast<const unsigned char*>(words)[at[i]]; }
G word(float* out, const int* at) { I; out[i] = words[at[i]]; }
G pair(float2* out, const int* at) { I; out[i] = pairs[at[i]]; }
G quad(float4* out, const int* at) { I; out[i] = quads[at[i]]; }
G member(float* out, const int* at, const __grid_constant__ Table t) { I; out[i] = t.words[at[i]]; }
G member_pair(float2* out, const int* at, const __grid_constant__ Table t) { I; out[i] = t.pairs[at[i]]; }
G member_quad(float4* out, const int* at, const __grid_constant__ Table t) { I; out[i] = t.quads[at[i]]; }
G plain(float* out, const int* at, const Table t) { I; out[i] = t.words[at[i]]; }
