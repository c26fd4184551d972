// Convolution (cross-correlation) and its gradient for the input, channels last, as implicit
// matrix products.
//
//     forward:  y[n, o, f]  = Σ over cells k, channels c of x[n, o stride + k dilation - pad, c]
//                             w[k, c, f]
//     input:    dx[n, i, c] = Σ over k, f of g[n, o, f] w[k, c, f], o stride + k dilation - pad = i
//
// x [N, *in, C], w [*size, C / groups, F], y and g [N, *out, F]; three spatial axes. This is im2col
// (Chellapilla, Puri & Simard 2006) without its matrix: a block makes a tile of results (see
// convolution_tiles.cuh) and fetches the operands 16 terms (k, c) at a time, twice buffered: while
// one tile is multiplied, the next is in flight to registers.
//
// The input gradient goes by residues: inputs i with equal (i + pad) mod stride see the same cells,
// so each residue is a forward product over these cells alone, without the zeros between strides.
//
// Grid: x tiles of rows (n, o), y tiles of columns f, z groups times residues.
#include "gtape.cuh"
#include "convolution_tiles.cuh"
#include "windows.cuh"

// One residue of one axis: row j reads the source at base + j row_step + t cell_step for its cell
// t < cells, which is the filter's cell first + t skip; row j is result start + j spread.
struct Residue {
    int rows, cells, first, skip, base, row_step, cell_step, limit, start, spread;
};

DEVICE Residue forward_residue(const Axis& a) {
    return {a.out, a.size, 0, 1, -a.pad, a.stride, a.dilation, a.in, 0, 1};
}

// Row j is the j-th input i with (i + pad) mod stride = r.
DEVICE Residue input_residue(const Axis& a, int r) {
    int start = (r - a.pad) % a.stride;
    if (start < 0) start += a.stride;
    int first = 0, skip = 1;
    while (first < a.size && first * a.dilation % a.stride != r) ++first;
    while (skip * a.dilation % a.stride) ++skip;
    int rows = start < a.in ? (a.in - start + a.stride - 1) / a.stride : 0;
    int cells = first < a.size ? (a.size - first + skip - 1) / skip : 0;
    int base = (start + a.pad - first * a.dilation) / a.stride;
    return {rows, cells, first, skip, base, 1, -(skip * a.dilation / a.stride), a.out, start,
            a.stride};
}

// One group and residue. `terms` and `columns` are channels of the group in source and result.
template <typename T, bool INPUT> struct Implicit {
    Residue z, y, x;
    long long images, source_channels, result_channels;
    long long source_group, result_group, filter_group, depth, features;
    int terms, columns, size_y, size_x;
    bool aligned;

    // The product number `index` of groups times residues.
    DEVICE void lay_out(const Axis& az, const Axis& ay, const Axis& ax, long long channels,
                        long long all_features, long long groups, long long index) {
        if constexpr (INPUT) {
            x = input_residue(ax, next_digit(index, ax.stride));
            y = input_residue(ay, next_digit(index, ay.stride));
            z = input_residue(az, next_digit(index, az.stride));
        } else {
            x = forward_residue(ax), y = forward_residue(ay), z = forward_residue(az);
        }
        long long width = all_features / groups;
        features = all_features, depth = channels / groups;
        terms = (int)(INPUT ? width : depth), columns = (int)(INPUT ? depth : width);
        source_channels = INPUT ? features : channels;
        result_channels = INPUT ? channels : features;
        source_group = index * terms, result_group = index * columns;
        filter_group = index * width;
        size_y = ay.size, size_x = ax.size;
    }
    DEVICE long long rows() const { return images * z.rows * y.rows * x.rows; }
    DEVICE long long total_terms() const { return (long long)terms * z.cells * y.cells * x.cells; }

    DEVICE Place place(long long row, int result_z, int result_y, int result_x) const {
        Place p{0, -1, NOWHERE, 0, 0};
        if (row >= rows()) return p;
        int jx = next_digit(row, x.rows), jy = next_digit(row, y.rows);
        int jz = next_digit(row, z.rows);
        p.z = z.base + jz * z.row_step;
        p.y = y.base + jy * y.row_step;
        p.x = x.base + jx * x.row_step;
        p.source = (((row * z.limit + p.z) * y.limit + p.y) * x.limit + p.x) * source_channels +
                   source_group;
        p.result = (((row * result_z + z.start + jz * z.spread) * result_y + y.start +
                     jy * y.spread) * result_x + x.start + jx * x.spread) * result_channels +
                   result_group;
        return p;
    }
};

// The term that a thread loads: channel c of cell (z, y, x) of the residue.
struct Term {
    int c, z, y, x;
    template <typename P> DEVICE void advance(const P& p, int by) {
        c += by;
        while (c >= p.terms) {
            c -= p.terms;
            if (++x == p.x.cells) {
                x = 0;
                if (++y == p.y.cells) {
                    y = 0;
                    ++z;
                }
            }
        }
    }
};

// V terms of one row of the source; zeros in the padding, beyond the rows and beyond the terms.
template <int V, typename T, bool INPUT>
DEVICE Vec<T, V> load_row(const Implicit<T, INPUT>& p, const T* __restrict__ source,
                          const Place& at, const Term& term) {
    int z = at.z + term.z * p.z.cell_step, y = at.y + term.y * p.y.cell_step,
        x = at.x + term.x * p.x.cell_step;
    bool inside = term.z < p.z.cells && z >= 0 && z < p.z.limit && y >= 0 && y < p.y.limit &&
                  x >= 0 && x < p.x.limit;
    if (!inside) return Vec<T, V>{};
    long long shift = ((long long)term.z * p.z.cell_step * p.y.limit + term.y * p.y.cell_step) *
                          p.x.limit + term.x * p.x.cell_step;
    return load_neighbours<V>(source + at.source + shift * p.source_channels + term.c, p.aligned);
}

// V columns of the filter for one term (forward), where the terms of all cells lie in a row.
template <int V, typename T>
DEVICE Vec<T, V> load_columns(const Implicit<T, false>& p, const T* __restrict__ filter,
                              long long term, long long column) {
    if (term >= p.total_terms() || column >= p.columns) return Vec<T, V>{};
    return load_neighbours<V>(filter + term * p.features + p.filter_group + column, p.aligned);
}

// V terms of one column of the filter (input gradient).
template <int V, typename T>
DEVICE Vec<T, V> load_terms(const Implicit<T, true>& p, const T* __restrict__ filter,
                            const Term& term, long long column) {
    if (term.z >= p.z.cells || column >= p.columns) return Vec<T, V>{};
    long long cell = ((long long)(p.z.first + term.z * p.z.skip) * p.size_y + p.y.first +
                      term.y * p.y.skip) * p.size_x + p.x.first + term.x * p.x.skip;
    return load_neighbours<V>(
        filter + (cell * p.depth + column) * p.features + p.filter_group + term.c, p.aligned);
}

// What one thread brings of the next 16 terms: N pieces of V neighbours of each operand.
template <typename T, int G, int V, bool INPUT> struct Staged {
    static constexpr int N = 4 * G / V, ACROSS = 64 * G / V;
    Vec<T, V> row[N], column[N];

    DEVICE void load(const Implicit<T, INPUT>& p, const T* __restrict__ source,
                     const T* __restrict__ filter, const Place* places, const Term& term,
                     long long first_term, long long first_column) {
        int lane = threadIdx.x / (TERMS / V);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            row[i] = load_row<V>(p, source, places[lane + 16 * V * i], term);
            if constexpr (INPUT)
                column[i] = load_terms<V>(p, filter, term, first_column + lane + 16 * V * i);
            else
                column[i] = load_columns<V>(p, filter,
                                            first_term + threadIdx.x / ACROSS + 4 * V / G * i,
                                            first_column + threadIdx.x % ACROSS * V);
        }
    }
    template <typename A>
    DEVICE void store(A (*rows)[64 * G + 4], A (*columns)[64 * G + 4]) const {
        int lane = threadIdx.x / (TERMS / V), term = threadIdx.x % (TERMS / V) * V;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            put_down(rows, term, lane + 16 * V * i, row[i]);
            if constexpr (INPUT)
                put_down(columns, term, lane + 16 * V * i, column[i]);
            else
                put_along(&columns[threadIdx.x / ACROSS + 4 * V / G * i]
                                  [threadIdx.x % ACROSS * V], column[i]);
        }
    }
};

// The block's tile of the product, written to y. `rows`, `columns` and `places` are shared.
template <typename T, int G, int V, bool INPUT>
DEVICE void make_tile(const Implicit<T, INPUT>& p, const T* __restrict__ source,
                      const T* __restrict__ filter, T* __restrict__ y, const Place* places,
                      Tile<compute_t<T>, G>& rows, Tile<compute_t<T>, G>& columns) {
    using A = compute_t<T>;
    A sum[4 * G][4 * G] = {};
    long long first_column = (long long)blockIdx.y * 64 * G, total = p.total_terms();
    Staged<T, G, V, INPUT> staged;
    Term term{0, 0, 0, 0};
    if (total) {
        term.advance(p, threadIdx.x % (TERMS / V) * V);
        staged.load(p, source, filter, places, term, 0, first_column);
        staged.store(rows.v[0], columns.v[0]);
    }
    int side = 0;
    for (long long at = 0; at < total; at += TERMS, side ^= 1) {
        __syncthreads();
        bool more = at + TERMS < total;
        if (more) {
            term.advance(p, TERMS);
            staged.load(p, source, filter, places, term, at + TERMS, first_column);
        }
        multiply<A, G>(rows.v[side], columns.v[side], sum);
        if (more) staged.store(rows.v[side ^ 1], columns.v[side ^ 1]);
    }
    store_tile<G>(y, sum, [&](int row) { return places[row].result; }, first_column, p.columns);
}

// V neighbouring channels are loaded at once; V divides those of a group.
template <typename T, int G, int V, bool INPUT>
__global__ void __launch_bounds__(256, 2)
convolve(const T* __restrict__ source, const T* __restrict__ filter, T* __restrict__ y,
         long long images, long long channels, long long features, long long groups,
         long long in_z, long long in_y, long long in_x, long long out_z, long long out_y,
         long long out_x, long long size_z, long long size_y, long long size_x, long long stride_z,
         long long stride_y, long long stride_x, long long dilation_z, long long dilation_y,
         long long dilation_x, long long pad_z, long long pad_y, long long pad_x) {
    using A = compute_t<T>;
    __shared__ Tile<A, G> rows, columns;
    __shared__ Place places[64 * G];
    __shared__ Implicit<T, INPUT> p;  // registers hold sums, not the geometry
    Axis az{in_z, out_z, size_z, stride_z, dilation_z, pad_z};
    Axis ay{in_y, out_y, size_y, stride_y, dilation_y, pad_y};
    Axis ax{in_x, out_x, size_x, stride_x, dilation_x, pad_x};
    if (threadIdx.x == 0) {
        p.images = images;
        p.aligned = aligned16(source, filter);
        p.lay_out(az, ay, ax, channels, features, groups, blockIdx.z);
    }
    __syncthreads();
    long long first_row = (long long)blockIdx.x * 64 * G;
    if (first_row >= p.rows()) return;
    if (threadIdx.x < 64 * G)
        places[threadIdx.x] = p.place(first_row + threadIdx.x, INPUT ? az.in : az.out,
                                      INPUT ? ay.in : ay.out, INPUT ? ax.in : ax.out);
    __syncthreads();
    make_tile<T, G, V, INPUT>(p, source, filter, y, places, rows, columns);
}
