"""Native code on the CPU: the compiler, the cache, and the runtime library of threads and GEMM."""
