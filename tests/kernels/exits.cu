// Loops whose exits depend on a volatile load (V), an atomic (A), or plain loads (P, Q), in different orders.
#define LOOP _Pragma("unroll 1")
#define V(k) (((volatile int*)t)[k] != 0)
#define A(k) (atomicAdd(&t[k], 1) == 3)
#define P(k) (x[k] == 7)
#define Q(k) (x[(k) + 64] == 9)
#define LEAVE(condition) if (condition) break;
#define END(condition) if (condition) return;
#define COUNTED(code) LOOP for (; k < n; k += 1024) { code y[k] = 2; }
#define WHILE(condition, code) LOOP do { code y[k] = 2; k += 3; } while (condition);
#define ENDLESS(code) LOOP while (true) { code y[k] = 2; k += 3; }
#define KERNEL(name, loop) \
    extern "C" __global__ void name(int* y, int* t, const int* x, int n) \
    { \
        int k = blockIdx.x * blockDim.x + threadIdx.x, count = 0; \
        loop \
        y[k + 64] = count; \
    }

KERNEL(counted_volatile, COUNTED(LEAVE(V(k))))
KERNEL(counted_atomic, COUNTED(LEAVE(A(k))))
KERNEL(counted_plain_volatile_plain, COUNTED(LEAVE(P(k)) LEAVE(V(k)) LEAVE(Q(k))))
KERNEL(counted_plain_plain_volatile, COUNTED(LEAVE(P(k)) LEAVE(Q(k)) LEAVE(V(k))))
KERNEL(counted_volatile_store_plain, COUNTED(LEAVE(V(k)) y[k + 1] = 1; LEAVE(P(k))))
KERNEL(counted_two_volatiles, COUNTED(LEAVE(V(k)) LEAVE(V(k + 3))))
KERNEL(counted_volatiles_plain, COUNTED(LEAVE(V(k)) LEAVE(V(k + 3)) LEAVE(P(k))))
KERNEL(counted_atomic_plain, COUNTED(LEAVE(A(k)) LEAVE(P(k))))
KERNEL(counted_volatile_end, COUNTED(END(V(k))))
KERNEL(counted_atomic_end, COUNTED(END(A(k))))
KERNEL(while_plain_volatile_plain, WHILE(Q(k), LEAVE(V(k)) LEAVE(P(k))))
KERNEL(while_plain_plain_volatile, WHILE(Q(k), LEAVE(P(k)) LEAVE(V(k))))
KERNEL(while_volatile, WHILE(!V(k), ))
KERNEL(while_volatile_volatile, WHILE(!V(k), LEAVE(V(k))))
KERNEL(while_volatile_volatile_plain, WHILE(!V(k), LEAVE(V(k)) LEAVE(P(k))))
KERNEL(while_plain_volatile, WHILE(Q(k), LEAVE(V(k))))
KERNEL(while_plain_volatile_end, WHILE(Q(k), END(V(k))))
KERNEL(while_volatile_plain, WHILE(V(k), LEAVE(P(k))))
KERNEL(while_atomic_plain, WHILE(A(k), LEAVE(P(k)) LEAVE(Q(k))))
KERNEL(while_plain, WHILE(P(k), LEAVE(Q(k))))
KERNEL(while_plain_beside_atomic, WHILE(P(k), count += atomicAdd(&t[k], 1);))
KERNEL(while_plain_beside_volatile, WHILE(P(k), count += V(k);))
KERNEL(while_plain_beside_reduction, WHILE(P(k), atomicAdd(&t[k], 1);))
KERNEL(while_branch_of_atomic, WHILE(count < 5, if (A(k)) { y[k + 1] = 1; ++count; }))
KERNEL(while_branch_beside_atomic, WHILE(P(k), if (A(k)) { y[k + 1] = 1; ++count; }))
KERNEL(while_address_of_atomic, WHILE(P(k), k = atomicAdd(&t[k], 3);))
KERNEL(while_fence, WHILE(P(k), __threadfence();))
KERNEL(while_clock, WHILE(clock64() & 1023, ))
KERNEL(endless_volatile_plain, ENDLESS(LEAVE(V(k)) LEAVE(P(k))))
KERNEL(endless_plain_volatile_plain, ENDLESS(LEAVE(P(k)) LEAVE(V(k)) LEAVE(Q(k))))
KERNEL(endless_volatile_end, ENDLESS(END(V(k))))
KERNEL(endless_volatile_end_plain, ENDLESS(END(V(k)) LEAVE(P(k))))
KERNEL(endless_plain_volatile_end, ENDLESS(LEAVE(P(k)) END(V(k))))
KERNEL(loop_of_loops, LOOP for (int j = 0; j < n; ++j) { LOOP while (A(k)) k = x[k]; count += k; y[k + j] = count; })
KERNEL(loop_around_loop, LOOP while (A(k)) { LOOP for (int j = x[k]; j > 0; --j) y[j] = k; k += 5; })
KERNEL(counted_volatile_skips_end, COUNTED(if (V(k)) continue; END(P(k))))
KERNEL(loops_with_one_head, LOOP for (int j = 0; j < n; ++j) { LOOP while (V(k)) k += 3; })
