// Average pooling, channels last: x [N, *in, C], y [N, *out, C].
//
//     average_pool:       y[o] = Σ x[place(o, k)] / n(o) over the cells k inside the input
//     average_pool_grad:  dx[i] = Σ a[o] / n(o) over the windows o that see i
//
// n(o) is the number of cells of o inside the input, at least 1. The gradient gathers: a thread
// owns V neighbouring channels of one input cell, so there are no atomics. Both kernels are a loop
// over the grid, a thread taking 16 bytes of channels where channels and pointers allow it.
#include "gtape.cuh"
#include "windows.cuh"

DEVICE int count_inside(const Windows& w, int oz, int oy, int ox) {
    int count = w.z.cells_inside(oz) * w.y.cells_inside(oy) * w.x.cells_inside(ox);
    return count > 0 ? count : 1;
}

template <typename T, int V>
DEVICE void average_of_windows(const T* __restrict__ x, T* __restrict__ y, const Windows& w,
                               long long images) {
    using A = compute_t<T>;
    int words = (int)(w.channels / V);
    for (long long i = grid_index(); i < images * w.output_cells() * words; i += grid_size()) {
        Site at(i, w.z.out, w.y.out, w.x.out, words, V);
        A total[V];
#pragma unroll
        for (int v = 0; v < V; ++v) total[v] = A(0);
        w.cells_of(at.z, at.y, at.x, [&](int iz, int iy, int ix, bool inside) {
            if (inside) {
                Vec<T, V> cell = *(const Vec<T, V>*)(x + w.input(at.n, iz, iy, ix) + at.c);
#pragma unroll
                for (int v = 0; v < V; ++v) total[v] += (A)cell.v[v];
            }
            return true;
        });
        A count = (A)count_inside(w, at.z, at.y, at.x);
        Vec<T, V> made;
#pragma unroll
        for (int v = 0; v < V; ++v) made.v[v] = T(total[v] / count);
        *(Vec<T, V>*)(y + w.output(at.n, at.z, at.y, at.x) + at.c) = made;
    }
}

template <typename T>
__global__ void __launch_bounds__(256, 2)
average_pool(const T* __restrict__ x, T* __restrict__ y,
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
    if (channels % V == 0 && aligned16(x, y)) average_of_windows<T, V>(x, y, w, images);
    else average_of_windows<T, 1>(x, y, w, images);
}

template <typename T, int V>
DEVICE void gradient_of_average(const T* __restrict__ a, T* __restrict__ dx, const Windows& w,
                                long long images) {
    using A = compute_t<T>;
    int words = (int)(w.channels / V);
    for (long long i = grid_index(); i < images * w.input_cells() * words; i += grid_size()) {
        Site at(i, w.z.in, w.y.in, w.x.in, words, V);
        A total[V];
#pragma unroll
        for (int v = 0; v < V; ++v) total[v] = A(0);
        w.seen_by(at, [&](int oz, int oy, int ox, int, int, int) {
            Vec<T, V> given = *(const Vec<T, V>*)(a + w.output(at.n, oz, oy, ox) + at.c);
            A count = (A)count_inside(w, oz, oy, ox);
#pragma unroll
            for (int v = 0; v < V; ++v) total[v] += (A)given.v[v] / count;
        });
        Vec<T, V> made;
#pragma unroll
        for (int v = 0; v < V; ++v) made.v[v] = T(total[v]);
        *(Vec<T, V>*)(dx + w.input(at.n, at.z, at.y, at.x) + at.c) = made;
    }
}

template <typename T>
__global__ void __launch_bounds__(256, 2)
average_pool_grad(const T* __restrict__ a, T* __restrict__ dx,
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
    if (channels % V == 0 && aligned16(a, dx)) gradient_of_average<T, V>(a, dx, w, images);
    else gradient_of_average<T, 1>(a, dx, w, images);
}
