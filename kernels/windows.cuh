// Sliding windows over up to three spatial axes, channels last: what pooling and convolution share.
//
// Along one axis the window at output o sees, in its cell k, the input o stride + k dilation - pad.
// One and two axes are three of which the first have size 1.
#pragma once
#include "gtape.cuh"

struct Axis {
    int in, out, size, stride, dilation, pad;
    Axis() = default;
    DEVICE Axis(long long in, long long out, long long size, long long stride, long long dilation,
                long long pad)
        : in((int)in), out((int)out), size((int)size), stride((int)stride),
          dilation((int)dilation), pad((int)pad) {}

    DEVICE int place(int o, int k) const { return o * stride + k * dilation - pad; }
    DEVICE bool inside(int i) const { return i >= 0 && i < in; }

    // The first window that may see input i; there is none where it is above last_window(i).
    DEVICE int first_window(int i) const {
        int beyond = i + pad - (size - 1) * dilation;
        return beyond <= 0 ? 0 : (beyond + stride - 1) / stride;
    }
    DEVICE int last_window(int i) const {
        int o = (i + pad) / stride;
        return o < out ? o : out - 1;
    }
    // The cell in which window o sees input i; -1 where it lies between two cells.
    DEVICE int cell(int o, int i) const {
        int distance = i + pad - o * stride;
        if (dilation == 1) return distance;
        int k = distance / dilation;
        return k * dilation == distance ? k : -1;
    }
    // How many cells of window o lie inside the input.
    DEVICE int cells_inside(int o) const {
        int start = o * stride - pad, last = size - 1, first = 0;
        if (start < 0) first = (-start + dilation - 1) / dilation;
        int reach = in - 1 - start;
        if (reach < 0) return 0;
        if (reach < last * dilation) last = reach / dilation;
        return last < first ? 0 : last - first + 1;
    }
};

// The last digit of `rest` in base n; `rest` becomes the digits before it. 32-bit division is
// several times as fast as 64-bit division.
DEVICE int next_digit(long long& rest, int n) {
    if (rest >> 32 == 0) {
        unsigned value = (unsigned)rest, quotient = value / (unsigned)n;
        rest = quotient;
        return (int)(value - quotient * (unsigned)n);
    }
    long long quotient = rest / n;
    int digit = (int)(rest - quotient * n);
    rest = quotient;
    return digit;
}

// One thread's work: image n, cell (z, y, x), channels from c.
struct Site {
    long long n, c;
    int z, y, x;
    // The item `index` of [images, depth, height, width, words], a word being v channels.
    DEVICE Site(long long index, int depth, int height, int width, int words, int v) {
        c = (long long)next_digit(index, words) * v;
        x = next_digit(index, width);
        y = next_digit(index, height);
        z = next_digit(index, depth);
        n = index;
    }
};

struct Windows {
    Axis z, y, x;
    long long channels;

    DEVICE long long input(long long n, int iz, int iy, int ix) const {
        return (((n * z.in + iz) * y.in + iy) * x.in + ix) * channels;
    }
    DEVICE long long output(long long n, int oz, int oy, int ox) const {
        return (((n * z.out + oz) * y.out + oy) * x.out + ox) * channels;
    }
    DEVICE long long input_cells() const { return (long long)z.in * y.in * x.in; }
    DEVICE long long output_cells() const { return (long long)z.out * y.out * x.out; }

    // Calls visit(oz, oy, ox, kz, ky, kx) for each window that sees an input site, in its cell k.
    template <typename F> DEVICE void seen_by(const Site& at, F visit) const {
        for (int oz = z.first_window(at.z); oz <= z.last_window(at.z); ++oz) {
            int kz = z.cell(oz, at.z);
            if (kz < 0) continue;
            for (int oy = y.first_window(at.y); oy <= y.last_window(at.y); ++oy) {
                int ky = y.cell(oy, at.y);
                if (ky < 0) continue;
                for (int ox = x.first_window(at.x); ox <= x.last_window(at.x); ++ox) {
                    int kx = x.cell(ox, at.x);
                    if (kx >= 0) visit(oz, oy, ox, kz, ky, kx);
                }
            }
        }
    }
    // Calls visit(iz, iy, ix, inside) for each cell of a window, row-major, until it returns false.
    template <typename F> DEVICE void cells_of(int oz, int oy, int ox, F visit) const {
        for (int kz = 0; kz < z.size; ++kz)
            for (int ky = 0; ky < y.size; ++ky)
                for (int kx = 0; kx < x.size; ++kx) {
                    int iz = z.place(oz, kz), iy = y.place(oy, ky), ix = x.place(ox, kx);
                    if (!visit(iz, iy, ix, z.inside(iz) && y.inside(iy) && x.inside(ix))) return;
                }
    }
};
