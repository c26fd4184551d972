// The adjoint derivatives of softmax and log_softmax at their results y[rows, cols], applied to
// g[rows, cols], row by row.
//
//   SoftmaxGrad       dx = y g - y sum(y g)
//   LogSoftmaxGrad    dx = g - e^y sum(g)
//
// Sums and products in float for two-byte floats.
//
// Geometry: that of softmax.cu; softmax_grad_shared takes the bytes of two rows as dynamic shared
// memory. dx may be y or g.
#include "softmax_rows.cuh"

struct SoftmaxGrad {
    template <typename C> static DEVICE C term(C y, C g) { return y * g; }
    template <typename T, typename C> static DEVICE C value(C y, C g, C sum) {
        return y * g - y * sum;
    }
};

struct LogSoftmaxGrad {
    template <typename C> static DEVICE C term(C, C g) { return g; }
    template <typename T, typename C> static DEVICE C value(C y, C g, C sum) {
        return g - exponential<T>(y) * sum;
    }
};

template <typename T, int N, typename D>
DEVICE compute_t<T> grad_terms(const T (&y)[N], const T (&g)[N]) {
    using C = compute_t<T>;
    C sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) sum += D::term(C(y[i]), C(g[i]));
    return sum;
}

// The values take the place of y.
template <typename T, int N, typename D>
DEVICE void grad_values(T (&y)[N], const T (&g)[N], compute_t<T> sum) {
    using C = compute_t<T>;
#pragma unroll
    for (int i = 0; i < N; ++i) y[i] = T(D::template value<T>(C(y[i]), C(g[i]), sum));
}

template <typename T, int N, typename D, typename Team>
DEVICE void grad_in_registers(const T* y, const T* g, T* dx, long long row, bool active,
                              long long cols, bool wide, const Team& team) {
    Slice<T, N> slice(team.rank, team.size, wide, 0, active ? cols : 0);
    T ys[N], gs[N];
    load(y + row * cols, slice, T(0.0f), ys);
    load(g + row * cols, slice, T(0.0f), gs);
    compute_t<T> sum = team.template reduce<Sum>(grad_terms<T, N, D>(ys, gs));
    grad_values<T, N, D>(ys, gs, sum);
    store(dx + row * cols, slice, ys);
}

template <typename T, int N, typename D, bool CACHED>
DEVICE void grads_in_tiles(const T* y, const T* g, T* dx, T* cache, long long rows, long long cols,
                           bool wide, compute_t<T>* scratch) {
    Block<compute_t<T>> team(scratch);
    const long long tile = (long long)team.size * N;
    // The second cached row starts at a multiple of 16 bytes.
    constexpr int V = Width<T>::value;
    T* cache_g = cache + (cols + V - 1) / V * V;
    T ys[N], gs[N];
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T *y_row = y + row * cols, *g_row = g + row * cols;
        compute_t<T> sum = 0;
        for (long long first = 0; first < cols; first += tile) {
            Slice<T, N> slice(team.rank, team.size, wide, first, cols);
            load(y_row, slice, T(0.0f), ys);
            load(g_row, slice, T(0.0f), gs);
            if (CACHED) {
                store(cache, slice, ys);
                store(cache_g, slice, gs);
            }
            sum += grad_terms<T, N, D>(ys, gs);
        }
        sum = team.template reduce<Sum>(sum);
        for (long long first = 0; first < cols; first += tile) {
            Slice<T, N> slice(team.rank, team.size, wide, first, cols);
            load(CACHED ? cache : y_row, slice, T(0.0f), ys);
            load(CACHED ? cache_g : g_row, slice, T(0.0f), gs);
            grad_values<T, N, D>(ys, gs, sum);
            store(dx + row * cols, slice, ys);
        }
    }
}

template <typename T> DEVICE bool grad_wide(const T* y, const T* g, const T* dx, long long cols) {
    return cols % Width<T>::value == 0 && aligned16(y, g, dx);
}

template <typename T, int N, typename D>
__global__ void __launch_bounds__(128)
softmax_grad_lanes(const T* y, const T* g, T* dx, long long rows, long long cols,
                   long long lanes) {
    Lanes team(lanes);
    bool wide = grad_wide(y, g, dx, cols);
    int mine = threadIdx.x / team.size, per_block = blockDim.x / team.size;
    long long stride = (long long)gridDim.x * per_block;
    for (long long first = (long long)blockIdx.x * per_block; first < rows; first += stride) {
        long long row = first + mine;
        bool active = row < rows;
        grad_in_registers<T, N, D>(y, g, dx, active ? row : rows - 1, active, cols, wide, team);
    }
}

template <typename T, int N, typename D>
__global__ void __launch_bounds__(256, 3)
softmax_grad_block(const T* y, const T* g, T* dx, long long rows, long long cols) {
    __shared__ compute_t<T> scratch[32];
    Block<compute_t<T>> team(scratch);
    bool wide = grad_wide(y, g, dx, cols);
    for (long long row = blockIdx.x; row < rows; row += gridDim.x)
        grad_in_registers<T, N, D>(y, g, dx, row, true, cols, wide, team);
}

template <typename T, int N, typename D>
__global__ void __launch_bounds__(1024)
softmax_grad_shared(const T* y, const T* g, T* dx, long long rows, long long cols) {
    __shared__ compute_t<T> scratch[32];
    DYNAMIC_SHARED(T, cache);
    grads_in_tiles<T, N, D, true>(y, g, dx, cache, rows, cols, grad_wide(y, g, dx, cols), scratch);
}

template <typename T, int N, typename D>
__global__ void __launch_bounds__(1024)
softmax_grad_stream(const T* y, const T* g, T* dx, long long rows, long long cols) {
    __shared__ compute_t<T> scratch[32];
    T* no_cache = nullptr;
    grads_in_tiles<T, N, D, false>(y, g, dx, no_cache, rows, cols, grad_wide(y, g, dx, cols),
                                   scratch);
}
