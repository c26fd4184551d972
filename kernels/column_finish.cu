// The sum of what the blocks of a kernel found for each column.
//
//     out[q, c] = sum over p of partial[q, p, c]
//
// Layout: partial [quantities, parts, cols], out [quantities, cols].
// Geometry: a block has 32 columns of the quantity blockIdx.y. Its warps, at most 32, go down the
// parts, and each then sums what all found for some of the columns: in a fixed order.
#include "gtape.cuh"

template <typename A, typename O>
__global__ void __launch_bounds__(1024, 1)
column_finish(const A* __restrict__ partial, O* out, long long parts, long long cols) {
    __shared__ A found[32][33];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    long long first = (long long)blockIdx.x * 32;
    const A* mine = partial + blockIdx.y * parts * cols + first + lane;
    A sum = A(0);
    if (first + lane < cols)
#pragma unroll 4
        for (long long p = warp; p < parts; p += warps) sum += mine[p * cols];
    found[warp][lane] = sum;
    __syncthreads();
    for (int column = warp; column < 32; column += warps) {
        sum = warp_reduce<Sum>(lane < warps ? found[lane][column] : A(0));
        if (lane == 0 && first + column < cols)
            out[blockIdx.y * cols + first + column] = O(sum);
    }
}
