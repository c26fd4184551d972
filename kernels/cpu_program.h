// What every generated program includes: how its kernels are run, and how Python calls it.
#pragma once
#include "cpu_gemm.h"
#include "cpu_math.h"
#include "cpu_threads.h"

using namespace gtape_cpu;

template <typename T> struct Bounds;
template <> struct Bounds<float> {
    static constexpr float low = -__builtin_inff(), high = __builtin_inff();
};
template <> struct Bounds<double> {
    static constexpr double low = -__builtin_inf(), high = __builtin_inf();
};
template <> struct Bounds<int> {
    static constexpr int low = -2147483647 - 1, high = 2147483647;
};
template <> struct Bounds<long long> {
    static constexpr long long low = -9223372036854775807ll - 1, high = 9223372036854775807ll;
};
template <> struct Bounds<signed char> {
    static constexpr signed char low = -128, high = 127;
};
template <> struct Bounds<short> {
    static constexpr short low = -32768, high = 32767;
};
template <> struct Bounds<unsigned char> {
    static constexpr unsigned char low = 0, high = 255;
};
template <> struct Bounds<unsigned short> {
    static constexpr unsigned short low = 0, high = 65535;
};
template <> struct Bounds<unsigned int> {
    static constexpr unsigned int low = 0, high = 4294967295u;
};
template <> struct Bounds<unsigned long long> {
    static constexpr unsigned long long low = 0, high = 18446744073709551615ull;
};
template <typename T> static constexpr T lowest_of() { return Bounds<T>::low; }
template <typename T> static constexpr T highest_of() { return Bounds<T>::high; }

typedef void (*Body)(void* given, int part, int parts);

// Runs a kernel in one part, or in as many as there are threads, at most `most`; gives their number.
static inline int run_kernel(Body body, char** q, int most) {
    int parts = 1;
    if (most > 1) {
        parts = gtape_threads();
        if (parts > most) parts = most;
    }
    if (parts == 1)
        body(q, 0, 1);
    else
        gtape_parallel(body, q, parts);
    return parts;
}

// NumPy's array object up to its flags, which are the same in NumPy 1 and 2.
struct ArrayObject {
    long references;
    void* type;
    char* data;
    int axes;
    long *lengths, *strides;
    void *base, *dtype;
    int flags;
};
static constexpr int CONTIGUOUS_AND_ALIGNED = 0x0001 | 0x0100;

// What Python puts before a program's pointers.
struct Python {
    void *none, *wrong_layout, *failed;  // objects that are returned
    void (*keep)(void*);                 // counts a reference
    void* array_type;
    void* (*release)(void);  // lets other threads of Python run, until `resume`
    void (*resume)(void*);
};
