// The gradient of a convolution for its filter, channels last, as an implicit matrix product.
//
//     dw[k, c, f] = Σ over n, o of x[n, o stride + k dilation - pad, c] g[n, o, f]
//
// x [N, *in, C], g [N, *out, F], dw [*size, C / groups, F]; three spatial axes. A block makes a
// tile (see convolution_tiles.cuh) of rows (k, c) and columns f over a part of the positions (n, o), and
// writes it to `partial` [splits, *size, C / groups, F] in the compute type; sum_splits adds the
// parts in their order. So the many positions fill the device, and sums have a fixed order.
//
// Grid: x tiles of rows, y tiles of columns, z groups times splits.
#include "gtape.cuh"
#include "convolution_tiles.cuh"
#include "windows.cuh"

template <typename T> struct Correlation {
    Axis az, ay, ax;
    long long channels, features, first, end;
    long long channel, feature;
    int depth, width;
    bool aligned;

    // Position m = (n, o), or nowhere when it is beyond this block's part.
    DEVICE Place place(long long m) const {
        Place p{0, -1, NOWHERE, 0, 0};
        if (m >= end) return p;
        p.result = m * features + feature;
        int ox = next_digit(m, ax.out), oy = next_digit(m, ay.out), oz = next_digit(m, az.out);
        p.z = az.place(oz, 0), p.y = ay.place(oy, 0), p.x = ax.place(ox, 0);
        p.source = (((m * az.in + p.z) * ay.in + p.y) * ax.in + p.x) * channels + channel;
        return p;
    }
    DEVICE long long rows() const { return (long long)az.size * ay.size * ax.size * depth; }
};

// The rows that a thread loads: V channels of one cell, at distance (z, y, x) from its window.
struct Cell {
    long long shift;
    int z, y, x;
    template <typename T> DEVICE Cell(const Correlation<T>& p, long long row) {
        z = NOWHERE, y = 0, x = 0, shift = 0;
        if (row >= p.rows()) return;
        int c = next_digit(row, p.depth);
        x = next_digit(row, p.ax.size) * p.ax.dilation;
        y = next_digit(row, p.ay.size) * p.ay.dilation;
        z = (int)row * p.az.dilation;
        shift = (((long long)z * p.ay.in + y) * p.ax.in + x) * p.channels + c;
    }
};

// What one thread brings of the next 16 positions: N pieces of V neighbours of each operand.
template <typename T, int G, int V> struct Staged {
    static constexpr int N = 4 * G / V, ACROSS = 64 * G / V, DOWN = 4 * V / G;
    Vec<T, V> row[N], column[N];

    DEVICE void load(const Correlation<T>& p, const T* __restrict__ x, const T* __restrict__ g,
                     const Place* places, const Cell& cell, long long column_at) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            Place at = places[threadIdx.x / ACROSS + DOWN * i];
            row[i] = Vec<T, V>{}, column[i] = Vec<T, V>{};
            if (p.az.inside(at.z + cell.z) && p.ay.inside(at.y + cell.y) &&
                p.ax.inside(at.x + cell.x))
                row[i] = load_neighbours<V>(x + at.source + cell.shift, p.aligned);
            if (at.result >= 0 && column_at < p.width)
                column[i] = load_neighbours<V>(g + at.result + column_at, p.aligned);
        }
    }
    template <typename A>
    DEVICE void store(A (*rows)[64 * G + 4], A (*columns)[64 * G + 4]) const {
        int at = threadIdx.x % ACROSS * V;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            put_along(&rows[threadIdx.x / ACROSS + DOWN * i][at], row[i]);
            put_along(&columns[threadIdx.x / ACROSS + DOWN * i][at], column[i]);
        }
    }
};

// The block's tile, written to `partial`. `places` holds the positions of the terms that are being
// loaded and of the next ones.
template <typename T, int G, int V>
DEVICE void make_tile(const Correlation<T>& p, const T* __restrict__ x,
                      const T* __restrict__ g, compute_t<T>* __restrict__ partial,
                      Place (*places)[TERMS], Tile<compute_t<T>, G>& rows,
                      Tile<compute_t<T>, G>& columns) {
    using A = compute_t<T>;
    A sum[4 * G][4 * G] = {};
    long long first_row = (long long)blockIdx.x * 64 * G;
    long long first_column = (long long)blockIdx.y * 64 * G;
    int across = threadIdx.x % (64 * G / V) * V;
    Cell cell(p, first_row + across);
    Staged<T, G, V> staged;
    if (threadIdx.x < 2 * TERMS)
        places[threadIdx.x / TERMS][threadIdx.x % TERMS] = p.place(p.first + threadIdx.x);
    __syncthreads();
    staged.load(p, x, g, places[0], cell, first_column + across);
    staged.store(rows.v[0], columns.v[0]);
    int side = 0;
    for (long long m = p.first; m < p.end; m += TERMS, side ^= 1) {
        __syncthreads();
        bool more = m + TERMS < p.end;
        if (more) staged.load(p, x, g, places[side ^ 1], cell, first_column + across);
        if (threadIdx.x < TERMS) places[side][threadIdx.x] = p.place(m + 2 * TERMS + threadIdx.x);
        multiply<A, G>(rows.v[side], columns.v[side], sum);
        if (more) staged.store(rows.v[side ^ 1], columns.v[side ^ 1]);
    }
    auto begin = [&](int row) {
        return first_row + row < p.rows() ? (first_row + row) * p.features + p.feature : -1;
    };
    store_tile<G>(partial, sum, begin, first_column, p.width);
}

// V neighbouring channels are loaded at once; V divides those of a group.
template <typename T, int G, int V>
__global__ void __launch_bounds__(256, 2)
filter_gradient(const T* __restrict__ x, const T* __restrict__ g,
                compute_t<T>* __restrict__ partial, long long images, long long channels,
                long long features, long long groups, long long in_z, long long in_y,
                long long in_x, long long out_z, long long out_y, long long out_x, long long size_z,
                long long size_y, long long size_x, long long stride_z, long long stride_y,
                long long stride_x, long long dilation_z, long long dilation_y,
                long long dilation_x, long long pad_z, long long pad_y, long long pad_x,
                long long splits) {
    using A = compute_t<T>;
    __shared__ Tile<A, G> rows, columns;
    __shared__ Place places[2][TERMS];
    __shared__ Correlation<T> p;  // registers hold sums, not the geometry
    long long group = blockIdx.z / splits, split = blockIdx.z % splits;
    long long depth = channels / groups, width = features / groups;
    if (threadIdx.x == 0) {
        long long positions = images * out_z * out_y * out_x;
        long long part = ((positions + splits - 1) / splits + TERMS - 1) / TERMS * TERMS;
        long long first = split * part, left = positions - first;
        p = {{in_z, out_z, size_z, stride_z, dilation_z, pad_z},
             {in_y, out_y, size_y, stride_y, dilation_y, pad_y},
             {in_x, out_x, size_x, stride_x, dilation_x, pad_x}, channels, features, first,
             first + (part < left ? part : left),
             group * depth, group * width, (int)depth, (int)width, aligned16(x, g)};
    }
    __syncthreads();
    A* mine = partial + split * p.rows() * features;
    make_tile<T, G, V>(p, x, g, mine, places, rows, columns);
}

// dw = the sum of `splits` arrays of `size` elements.
template <typename T>
__global__ void __launch_bounds__(256)
sum_splits(const compute_t<T>* __restrict__ partial, T* __restrict__ dw, long long splits,
           long long size) {
    for (long long i = grid_index(); i < size; i += grid_size()) {
        compute_t<T> sum = partial[i];
#pragma unroll 4
        for (long long s = 1; s < splits; ++s) sum += partial[s * size + i];
        dw[i] = T(sum);
    }
}
