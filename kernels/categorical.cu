// Class numbers of probability softmax(logits): the inverse of each row's distribution function.
//
// edges[b, k] = sum_{j <= k} exp(logits[b, j] - max_j logits[b, j]) in double, then the first class
// whose edge lies above u edges[b, last], u uniform, by bisection; as
// gtape/numerics/distributions.py does it, with the same u.
// Layouts: logits T[batch, classes], edges double[batch, classes], found long long[batch, samples].
// Geometry: class_edges a block a row, class_draws a thread a sample, both over any grid.
#include "philox.cuh"

// What the threads before this one hold, added up; `total` is the sum of the block.
DEVICE double sum_before(double value, double* scratch, double* total) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    double sum = value;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        double other = __shfl_up_sync(FULL_WARP, sum, d);
        if (lane >= d) sum += other;
    }
    if (lane == 31) scratch[warp] = sum;
    __syncthreads();
    double before = 0.0, all = 0.0;
    for (int w = 0; w < warps; w++) {
        if (w == warp) before = all;
        all += scratch[w];
    }
    __syncthreads();
    *total = all;
    return before + (sum - value);
}

// The edges of one row by the block.
template <typename T>
DEVICE void edges_of(const T* __restrict__ row, double* out, long long classes, double* scratch) {
    constexpr int EACH = 4;
    double largest = -infinity<double>();
    for (long long i = threadIdx.x; i < classes; i += blockDim.x)
        largest = Max::combine(largest, (double)(compute_t<T>)row[i]);
    largest = block_reduce<Max>(largest, scratch);
    __syncthreads();
    double carry = 0.0;
    for (long long base = 0; base < classes; base += blockDim.x * EACH) {
        long long first = base + threadIdx.x * EACH;
        double part[EACH], sum = 0.0, total;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            sum += first + j < classes ? exp((double)(compute_t<T>)row[first + j] - largest) : 0.0;
            part[j] = sum;
        }
        double before = carry + sum_before(sum, scratch, &total);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (first + j < classes) out[first + j] = before + part[j];
        carry += total;
    }
}

template <typename T>
__global__ void __launch_bounds__(512)
class_edges(const T* __restrict__ logits, double* edges, long long batch, long long classes) {
    __shared__ double scratch[32];
    for (long long b = blockIdx.x; b < batch; b += gridDim.x)
        edges_of(logits + b * classes, edges + b * classes, classes, scratch);
}

template <typename T>
__global__ void __launch_bounds__(256)
class_draws(const T* __restrict__ logits, const double* __restrict__ edges, long long* found,
            long long batch, long long classes, long long samples, long long key, long long low,
            long long high) {
    Philox words(key, low, high);
    for (long long i = grid_index(); i < batch * samples; i += grid_size()) {
        const double* row = edges + i / samples * classes;
        const T* of = logits + i / samples * classes;
        Words w = words(i / 2);
        double u = i & 1 ? wide_fraction(w.v[2], w.v[3]) : wide_fraction(w.v[0], w.v[1]);
        double total = row[classes - 1], target = u * total;
        double most = total * (1.0 - 0x1p-53);
        target = target < most ? target : most;
        long long at = 0, end = classes - 1;
        while (at < end) {
            long long middle = (at + end) / 2;
            if (row[middle] <= target) at = middle + 1;
            else end = middle;
        }
        // Sums in parallel may rise by a rounding where the weight is 0, which is never drawn.
        while (at < classes - 1 && (compute_t<T>)of[at] == -infinity<compute_t<T>>()) at++;
        while (at > 0 && (compute_t<T>)of[at] == -infinity<compute_t<T>>()) at--;
        found[i] = at;
    }
}
