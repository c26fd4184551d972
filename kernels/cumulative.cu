// Running sums, products and log-sum-exps along an axis.
//
//     y[j] = R over { x[k] : k <= j }      exclusive: k < j; reverse: k >= j, k > j
//
// x and y [outer, n, inner] in C order; values are combined in the compute type. scan_rows is for
// inner = 1: a block takes a row, in tiles of a 16-byte piece per thread, and carries the total
// over the tiles; the scan within a warp is by shuffles. scan_columns is for inner > 1 and for
// short rows: a thread takes V neighbouring columns.
//
// A row may be cut into segments of `segment` elements, so that few long rows fill a device: one
// launch writes the totals of the segments only (write = 0) to `totals` [outer, segments, inner],
// a second scans these exclusively, a third begins each segment at its `carries` (carried = 1).
// j counts in the direction of the scan, and so do segments. Blelloch 1990, "Prefix sums and their
// applications".
#include "gtape.cuh"
#include "product.cuh"

// log(exp a + exp b), without overflow; nan if either is nan.
struct LogAddExp {
    template <typename A> static DEVICE A identity() { return -infinity<A>(); }
    template <typename A> static DEVICE A combine(A a, A b) {
        A high = a > b ? a : b, gap = a > b ? b - a : a - b;
        if (a == b) return a + A(0.693147180559945309417);
        return gap <= 0 ? high + log1p(exp(gap)) : gap;
    }
};

// V values in the order of the scan; `at` is the place of the first in that order.
template <typename T, int V>
DEVICE Vec<T, V> load_along(const T* row, long long n, long long at, bool reverse) {
    if (!reverse) return *(const Vec<T, V>*)(row + at);
    Vec<T, V> stored = *(const Vec<T, V>*)(row + (n - at - V)), turned;
#pragma unroll
    for (int j = 0; j < V; ++j) turned.v[j] = stored.v[V - 1 - j];
    return turned;
}

template <typename T, int V>
DEVICE void store_along(T* row, long long n, long long at, bool reverse, const Vec<T, V>& value) {
    if (!reverse) {
        *(Vec<T, V>*)(row + at) = value;
        return;
    }
    Vec<T, V> turned;
#pragma unroll
    for (int j = 0; j < V; ++j) turned.v[j] = value.v[V - 1 - j];
    *(Vec<T, V>*)(row + (n - at - V)) = turned;
}

// The total of the lanes before this one; `value` becomes the total up to and with this lane.
template <typename R, typename A> DEVICE A warp_scan(A& value) {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        A before = __shfl_up_sync(FULL_WARP, value, d);
        if (lane >= d) value = R::template combine<A>(before, value);
    }
    A before = __shfl_up_sync(FULL_WARP, value, 1);
    return lane ? before : R::template identity<A>();
}

// One segment [begin, end) of a row by one block. `scratch` holds 2 totals for each warp. Returns
// the total of the segment and its carry.
template <typename T, typename R, int V>
DEVICE compute_t<T> scan_segment(const T* row, T* out, compute_t<T> carry, long long n,
                                 long long begin, long long end, bool reverse, bool exclusive,
                                 bool write, compute_t<T>* scratch) {
    using A = compute_t<T>;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    long long tile = (long long)blockDim.x * V, at = begin + (long long)threadIdx.x * V;
    Vec<T, V> next;
    if (at < end) next = load_along<T, V>(row, n, at, reverse);
    int side = 0;
    for (long long start = begin; start < end; start += tile, at += tile, side ^= 32) {
        A value[V], total = R::template identity<A>();
        if (at < end) {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                value[j] = (A)next.v[j];
                total = j ? R::template combine<A>(total, value[j]) : value[j];
            }
        }
        bool inside = at < end;
        if (at + tile < end) next = load_along<T, V>(row, n, at + tile, reverse);
        A before = warp_scan<R, A>(total);
        if (lane == 31) scratch[side + warp] = total;
        __syncthreads();
        A running = carry;
        for (int w = 0; w < warps; ++w) {
            if (w == warp) running = R::template combine<A>(carry, before);
            carry = R::template combine<A>(carry, scratch[side + w]);
        }
        if (!inside || !write) continue;
        Vec<T, V> made;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            A with = R::template combine<A>(running, value[j]);
            made.v[j] = T(exclusive ? running : with);
            running = with;
        }
        store_along<T, V>(out, n, at, reverse, made);
    }
    return carry;
}

template <typename T, typename R>
__global__ void __launch_bounds__(256, 2)
scan_rows(const T* __restrict__ x, T* __restrict__ y, const compute_t<T>* __restrict__ carries,
          compute_t<T>* __restrict__ totals, long long rows, long long n, long long segment,
          long long reverse, long long exclusive, long long carried, long long write) {
    using A = compute_t<T>;
    constexpr int V = Width<T>::value;
    __shared__ A scratch[64];
    long long segments = (n + segment - 1) / segment;
    bool wide = n % V == 0 && segment % V == 0 && aligned16(x, y);
    for (long long job = blockIdx.x; job < rows * segments; job += gridDim.x) {
        long long r = job / segments, begin = (job - r * segments) * segment;
        long long end = begin + segment < n ? begin + segment : n;
        A carry = carried ? carries[job] : R::template identity<A>();
        if (wide)
            carry = scan_segment<T, R, V>(x + r * n, y + r * n, carry, n, begin, end, reverse,
                                          exclusive, write, scratch);
        else
            carry = scan_segment<T, R, 1>(x + r * n, y + r * n, carry, n, begin, end, reverse,
                                          exclusive, write, scratch);
        if (!write && threadIdx.x == 0) totals[job] = carry;
        __syncthreads();  // the next row's first tile writes the scratch that this one's last reads
    }
}

template <typename T, typename R, int V>
DEVICE void scan_column(const T* __restrict__ x, T* __restrict__ y,
                        const compute_t<T>* __restrict__ carries, compute_t<T>* __restrict__ totals,
                        long long outer, long long n, long long inner, long long segment,
                        bool reverse, bool exclusive, bool carried, bool write) {
    using A = compute_t<T>;
    long long words = inner / V, segments = (n + segment - 1) / segment;
    for (long long job = grid_index(); job < outer * segments * words; job += grid_size()) {
        long long os = job / words, column = (job - os * words) * V;
        long long o = os / segments, begin = (os - o * segments) * segment;
        long long end = begin + segment < n ? begin + segment : n;
        A running[V];
#pragma unroll
        for (int v = 0; v < V; ++v)
            running[v] = carried ? carries[os * inner + column + v] : R::template identity<A>();
        long long step = reverse ? -inner : inner;
        long long place = (o * n + (reverse ? n - 1 - begin : begin)) * inner + column;
#pragma unroll 4
        for (long long j = begin; j < end; ++j, place += step) {
            Vec<T, V> value = *(const Vec<T, V>*)(x + place), made;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                A with = R::template combine<A>(running[v], (A)value.v[v]);
                made.v[v] = T(exclusive ? running[v] : with);
                running[v] = with;
            }
            if (write) *(Vec<T, V>*)(y + place) = made;
        }
        if (!write) {
#pragma unroll
            for (int v = 0; v < V; ++v) totals[os * inner + column + v] = running[v];
        }
    }
}

template <typename T, typename R>
__global__ void __launch_bounds__(256, 2)
scan_columns(const T* __restrict__ x, T* __restrict__ y, const compute_t<T>* __restrict__ carries,
             compute_t<T>* __restrict__ totals, long long outer, long long n, long long inner,
             long long segment, long long reverse, long long exclusive, long long carried,
             long long write) {
    constexpr int V = Width<T>::value;
    if (inner % V == 0 && aligned16(x, y))
        scan_column<T, R, V>(x, y, carries, totals, outer, n, inner, segment, reverse, exclusive,
                             carried, write);
    else
        scan_column<T, R, 1>(x, y, carries, totals, outer, n, inner, segment, reverse, exclusive,
                             carried, write);
}
