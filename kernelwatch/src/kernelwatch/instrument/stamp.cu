// Stores the time at which it runs, in nanoseconds (PTX ISA, "Special Registers: %globaltimer").
extern "C" __global__ void stamp(unsigned long long* output, const void*, long long)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    *output = now;
}
