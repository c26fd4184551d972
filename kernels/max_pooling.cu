// Max pooling, channels last: x [N, *in, C], y [N, *out, C].
//
//     max_pool:       y[o] = max over cells k of x[place(o, k)]
//     max_pool_grad:  dx[i] = Σ a[o] over the windows o whose winner is i
//     max_pool_pick:  b[o] = a[winner of o], 0 where it is padding
//     max_pool_index: the place of the winner in the flattened image, or batch
//
// Padding never wins in max_pool and a nan always does. The winner of a window is its first cell
// that holds y or a nan, else its last cell; padding counts as the lowest value there. The gradient
// gathers: a thread owns V neighbouring channels of one input cell and visits the windows that see
// it, so there are no atomics and sums have a fixed order. Every kernel is a loop over the grid; in
// the first two a thread takes 16 bytes of channels where channels and pointers allow it.
#include "gtape.cuh"
#include "windows.cuh"

template <typename A> DEVICE A lowest() { return -infinity<A>(); }
template <> DEVICE int lowest<int>() { return -2147483647 - 1; }
template <> DEVICE long long lowest<long long>() { return -9223372036854775807ll - 1; }

template <typename T, int V>
DEVICE void max_of_windows(const T* __restrict__ x, T* __restrict__ y, const Windows& w,
                           long long images) {
    using A = compute_t<T>;
    int words = (int)(w.channels / V);
    for (long long i = grid_index(); i < images * w.output_cells() * words; i += grid_size()) {
        Site at(i, w.z.out, w.y.out, w.x.out, words, V);
        A best[V];
#pragma unroll
        for (int v = 0; v < V; ++v) best[v] = lowest<A>();
        w.cells_of(at.z, at.y, at.x, [&](int iz, int iy, int ix, bool inside) {
            if (inside) {
                Vec<T, V> cell = *(const Vec<T, V>*)(x + w.input(at.n, iz, iy, ix) + at.c);
#pragma unroll
                for (int v = 0; v < V; ++v) best[v] = Max::combine<A>(best[v], (A)cell.v[v]);
            }
            return true;
        });
        Vec<T, V> made;
#pragma unroll
        for (int v = 0; v < V; ++v) made.v[v] = T(best[v]);
        *(Vec<T, V>*)(y + w.output(at.n, at.z, at.y, at.x) + at.c) = made;
    }
}

template <typename T>
__global__ void __launch_bounds__(256, 2)
max_pool(const T* __restrict__ x, T* __restrict__ y,
           long long images, long long channels, long long in_z, long long in_y, long long in_x,
           long long out_z, long long out_y, long long out_x, long long size_z, long long size_y,
           long long size_x, long long stride_z, long long stride_y, long long stride_x,
           long long dilation_z, long long dilation_y, long long dilation_x, long long pad_z,
           long long pad_y, long long pad_x) {
    Windows w{{in_z, out_z, size_z, stride_z, dilation_z, pad_z},
              {in_y, out_y, size_y, stride_y, dilation_y, pad_y},
              {in_x, out_x, size_x, stride_x, dilation_x, pad_x},
              channels};
    constexpr int V = Width<T>::value;
    if (channels % V == 0 && aligned16(x, y)) max_of_windows<T, V>(x, y, w, images);
    else max_of_windows<T, 1>(x, y, w, images);
}

// Whether a cell would be the winner of its window if it came first.
template <typename A> DEVICE bool is_best(A cell, A best) { return cell == best || cell != cell; }

// The gradient that input site `at` with the values `own` gets from window (oz, oy, ox).
template <typename T, int V>
DEVICE void add_if_winner(const T* __restrict__ a, const T* __restrict__ x,
                          const T* __restrict__ y, const Windows& w, const Site& at,
                          const Vec<T, V>& own, int oz, int oy, int ox, bool last,
                          compute_t<T> (&total)[V]) {
    using A = compute_t<T>;
    long long out = w.output(at.n, oz, oy, ox) + at.c;
    Vec<T, V> best = *(const Vec<T, V>*)(y + out);
    bool wins[V], any = false;
#pragma unroll
    for (int v = 0; v < V; ++v) {
        wins[v] = last || is_best<A>((A)own.v[v], (A)best.v[v]);
        any |= wins[v];
    }
    if (!any) return;
    w.cells_of(oz, oy, ox, [&](int iz, int iy, int ix, bool inside) {
        if (iz == at.z && iy == at.y && ix == at.x) return false;
        Vec<T, V> cell;
        if (inside) cell = *(const Vec<T, V>*)(x + w.input(at.n, iz, iy, ix) + at.c);
#pragma unroll
        for (int v = 0; v < V; ++v)
            wins[v] &= !is_best<A>(inside ? (A)cell.v[v] : lowest<A>(), (A)best.v[v]);
        return true;
    });
    Vec<T, V> given = *(const Vec<T, V>*)(a + out);
#pragma unroll
    for (int v = 0; v < V; ++v)
        if (wins[v]) total[v] += (A)given.v[v];
}

template <typename T, int V>
DEVICE void gradient_of_max(const T* __restrict__ a, const T* __restrict__ x,
                            const T* __restrict__ y, T* __restrict__ dx, const Windows& w,
                            long long images) {
    using A = compute_t<T>;
    int words = (int)(w.channels / V);
    for (long long i = grid_index(); i < images * w.input_cells() * words; i += grid_size()) {
        Site at(i, w.z.in, w.y.in, w.x.in, words, V);
        long long place = w.input(at.n, at.z, at.y, at.x) + at.c;
        Vec<T, V> own = *(const Vec<T, V>*)(x + place), made;
        A total[V];
#pragma unroll
        for (int v = 0; v < V; ++v) total[v] = A(0);
        w.seen_by(at, [&](int oz, int oy, int ox, int kz, int ky, int kx) {
            bool last = kz == w.z.size - 1 && ky == w.y.size - 1 && kx == w.x.size - 1;
            add_if_winner<T, V>(a, x, y, w, at, own, oz, oy, ox, last, total);
        });
#pragma unroll
        for (int v = 0; v < V; ++v) made.v[v] = T(total[v]);
        *(Vec<T, V>*)(dx + place) = made;
    }
}

template <typename T>
__global__ void __launch_bounds__(256, 2)
max_pool_grad(const T* __restrict__ a, const T* __restrict__ x, const T* __restrict__ y,
              T* __restrict__ dx,
           long long images, long long channels, long long in_z, long long in_y, long long in_x,
           long long out_z, long long out_y, long long out_x, long long size_z, long long size_y,
           long long size_x, long long stride_z, long long stride_y, long long stride_x,
           long long dilation_z, long long dilation_y, long long dilation_x, long long pad_z,
           long long pad_y, long long pad_x) {
    Windows w{{in_z, out_z, size_z, stride_z, dilation_z, pad_z},
              {in_y, out_y, size_y, stride_y, dilation_y, pad_y},
              {in_x, out_x, size_x, stride_x, dilation_x, pad_x},
              channels};
    constexpr int V = Width<T>::value;
    if (channels % V == 0 && aligned16(a, x, y, dx))
        gradient_of_max<T, V>(a, x, y, dx, w, images);
    else
        gradient_of_max<T, 1>(a, x, y, dx, w, images);
}

// Calls use(output place, input place or -1 in the padding, iz, iy, ix) for each window's winner.
template <typename T, typename F>
DEVICE void for_each_winner(const T* __restrict__ x, const T* __restrict__ y, const Windows& w,
                            long long images, F use) {
    using A = compute_t<T>;
    int words = (int)w.channels;
    for (long long i = grid_index(); i < images * w.output_cells() * words; i += grid_size()) {
        Site at(i, w.z.out, w.y.out, w.x.out, words, 1);
        A best = (A)y[i];
        int wz = 0, wy = 0, wx = 0;
        bool within = false;
        w.cells_of(at.z, at.y, at.x, [&](int iz, int iy, int ix, bool inside) {
            wz = iz, wy = iy, wx = ix, within = inside;
            return !is_best<A>(inside ? (A)x[w.input(at.n, iz, iy, ix) + at.c] : lowest<A>(), best);
        });
        use(i, at, within, wz, wy, wx);
    }
}

template <typename T>
__global__ void __launch_bounds__(256, 2)
max_pool_pick(const T* __restrict__ a, const T* __restrict__ x, const T* __restrict__ y,
              T* __restrict__ b,
           long long images, long long channels, long long in_z, long long in_y, long long in_x,
           long long out_z, long long out_y, long long out_x, long long size_z, long long size_y,
           long long size_x, long long stride_z, long long stride_y, long long stride_x,
           long long dilation_z, long long dilation_y, long long dilation_x, long long pad_z,
           long long pad_y, long long pad_x) {
    Windows w{{in_z, out_z, size_z, stride_z, dilation_z, pad_z},
              {in_y, out_y, size_y, stride_y, dilation_y, pad_y},
              {in_x, out_x, size_x, stride_x, dilation_x, pad_x},
              channels};
    for_each_winner(x, y, w, images,
                    [&](long long i, const Site& at, bool within, int iz, int iy, int ix) {
                        b[i] = within ? a[w.input(at.n, iz, iy, ix) + at.c] : T(0.0f);
                    });
}

template <typename T>
__global__ void __launch_bounds__(256, 2)
max_pool_index(const T* __restrict__ x, const T* __restrict__ y, long long* __restrict__ index,
           long long images, long long channels, long long in_z, long long in_y, long long in_x,
           long long out_z, long long out_y, long long out_x, long long size_z, long long size_y,
           long long size_x, long long stride_z, long long stride_y, long long stride_x,
           long long dilation_z, long long dilation_y, long long dilation_x, long long pad_z,
           long long pad_y, long long pad_x,
           long long batch) {
    Windows w{{in_z, out_z, size_z, stride_z, dilation_z, pad_z},
              {in_y, out_y, size_y, stride_y, dilation_y, pad_y},
              {in_x, out_x, size_x, stride_x, dilation_x, pad_x},
              channels};
    for_each_winner(x, y, w, images,
                    [&](long long i, const Site& at, bool, int iz, int iy, int ix) {
                        index[i] = w.input(batch ? at.n : 0, iz, iy, ix) + at.c;
                    });
}
