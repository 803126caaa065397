// Function pointers, virtual functions, a heap, tables of addresses.

struct Shape {
    float side;
    __device__ explicit Shape(float s) : side(s) {}
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    __device__ explicit Square(float s) : Shape(s) {}
    __device__ float area() const override { return side * side; }
};
struct Disc : Shape {
    __device__ explicit Disc(float s) : Shape(s) {}
    __device__ float area() const override { return 3 * side; }
};
// A shape of two others, which may be composed themselves.
struct Pair : Shape {
    const Shape *one, *two;
    __device__ Pair(const Shape* a, const Shape* b) : Shape(0), one(a), two(b) {}
    __device__ float area() const override { return one->area() + 10 * two->area(); }
};

extern "C" __global__ void shapes(float* out)
{
    Square square(threadIdx.x);
    Disc disc(2);
    Pair pair(&square, &disc), both(&pair, &square);
    const Shape* all[4] = {&square, &disc, &pair, &both};
    out[threadIdx.x] = all[threadIdx.x % 4]->area();
}

__device__ int add(int a, int b) { return a + b; }
__device__ int multiply(int a, int b) { return a * b; }
__device__ int (*const operations[2])(int, int) = {add, multiply};

extern "C" __global__ void chosen(int* out, const int* which)
{
    out[threadIdx.x] = operations[which[threadIdx.x]](threadIdx.x, 3);
}

extern "C" __global__ void heap(int* out, int n)
{
    int* mine = static_cast<int*>(malloc(n * sizeof(int)));
    if (mine == nullptr) {
        out[threadIdx.x] = -1;
        return;
    }
    for (int i = 0; i < n; i++) mine[i] = i * threadIdx.x;
    int sum = 0;
    for (int i = 0; i < n; i++) sum += mine[i];
    Shape* shape = threadIdx.x % 2 ? static_cast<Shape*>(new Square(sum)) : new Disc(sum);
    out[threadIdx.x] = shape->area();
    delete shape;
    free(mine);
}

__device__ int counter = 5;
__device__ int* at_counter = &counter;
__constant__ const char* const words[2] = {"one", "two"};

extern "C" __global__ void addresses(int* out)
{
    out[threadIdx.x] = *at_counter * 1000 + words[threadIdx.x % 2][threadIdx.x % 3];
}

extern "C" __global__ void stopped(int* out)
{
    if (threadIdx.x == 3) __brkpt();
    out[threadIdx.x] = 1;
}

// An indexed jump, which no version of nvcc here emits.
extern "C" __global__ void jumps(int* out)
{
    int x = 0;
    asm volatile(
        "{ .reg .u32 i; and.b32 i, %1, 3;\ntable: .branchtargets A0, A1, A2, A1;\nbrx.idx i, table;\n"
        "A0: mov.u32 %0, 10; bra END;\nA1: mov.u32 %0, 11; bra END;\nA2: mov.u32 %0, 12;\nEND: }"
        : "+r"(x) : "r"(threadIdx.x));
    out[threadIdx.x] = x;
}

// Atomics of 16 bits, two lanes per place: ptxas makes loops of them.
#include <cuda_fp16.h>

extern "C" __global__ void halves(__half* global, __half* out, unsigned short* swapped)
{
    __shared__ __half shared[64];
    shared[threadIdx.x % 64] = 0.f;
    __syncthreads();
    atomicAdd(&shared[threadIdx.x / 2], __half(1.f));
    atomicAdd(&global[threadIdx.x / 2], __half(threadIdx.x % 2));
    atomicCAS(&swapped[threadIdx.x], (unsigned short)(threadIdx.x % 3), (unsigned short)77);
    __syncthreads();
    out[threadIdx.x] = shared[threadIdx.x % 48];
}
