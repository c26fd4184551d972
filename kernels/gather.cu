// Rows picked by index.
//
//     y[o, i, k] = table[o, indices[i], k], and zeros where indices[i] is outside [0, rows)
//
// table [outer, rows, inner], indices [count], y [outer, count, inner], in C order. A row is moved
// as memory: S is the size of an element in bytes, and a lane moves 16 bytes at a time where rows
// and pointers allow it. A group of `lanes` threads (a power of two) moves a row, the groups of
// the grid stride over the rows, and blocks along y share long rows.
#include "gtape.cuh"

template <int S> struct Word;
template <> struct Word<1> { using type = unsigned char; };
template <> struct Word<2> { using type = unsigned short; };
template <> struct Word<4> { using type = unsigned int; };
template <> struct Word<8> { using type = unsigned long long; };

template <typename W, typename I>
DEVICE void gather_words(const W* __restrict__ table, const I* __restrict__ indices,
                         W* __restrict__ y, long long outer, long long rows, long long count,
                         long long words, long long lanes) {
    long long group = grid_index() / lanes, groups = grid_size() / lanes;
    long long first = lanes * blockIdx.y + (threadIdx.x & (lanes - 1));
    long long step = lanes * gridDim.y;
    for (long long row = group; row < outer * count; row += groups) {
        long long o = outer == 1 ? 0 : row / count;
        long long index = (long long)indices[row - o * count];
        W* to = y + row * words;
        if (index < 0 || index >= rows) {
            for (long long w = first; w < words; w += step) to[w] = W{};
            continue;
        }
        const W* from = table + (o * rows + index) * words;
#pragma unroll 4
        for (long long w = first; w < words; w += step) to[w] = from[w];
    }
}

template <int S, typename I>
__global__ void __launch_bounds__(256, 2)
gather_rows(const void* __restrict__ table, const I* __restrict__ indices, void* __restrict__ y,
            long long outer, long long rows, long long count, long long inner, long long lanes) {
    using W = typename Word<S>::type;
    constexpr int V = 16 / S;
    if (inner % V == 0 && aligned16(table, y))
        gather_words((const Vec<W, V>*)table, indices, (Vec<W, V>*)y, outer, rows, count, inner / V,
                     lanes);
    else
        gather_words((const W*)table, indices, (W*)y, outer, rows, count, inner, lanes);
}

// Index tuples as numbers of rows of flattened leading axes:
//
//     flat[i] = Σ indices[i, k] size[k + 1] … size[depth - 1], -1 where a tuple is out of range
//
// indices [count, depth], depth at most 6. One thread for each tuple.
template <typename I>
__global__ void __launch_bounds__(256, 2)
flatten_indices(const I* __restrict__ indices, long long* __restrict__ flat, long long count,
                long long depth, long long size0, long long size1, long long size2,
                long long size3, long long size4, long long size5) {
    const long long sizes[6] = {size0, size1, size2, size3, size4, size5};
    for (long long i = grid_index(); i < count; i += grid_size()) {
        long long row = 0;
        bool valid = true;
#pragma unroll
        for (int k = 0; k < 6; ++k)
            if (k < depth) {
                long long index = (long long)indices[i * depth + k];
                valid &= index >= 0 && index < sizes[k];
                row = row * sizes[k] + index;
            }
        flat[i] = valid ? row : -1;
    }
}
