// The operations of gtape's reductions and the types in which they accumulate.
#pragma once
#include "reduce.cuh"

struct Prod {
    template <typename A> static DEVICE A identity() { return A(1); }
    template <typename A> static DEVICE A combine(A a, A b) { return a * b; }
};

template <> DEVICE int Max::identity<int>() { return -2147483647 - 1; }
template <> DEVICE unsigned Max::identity<unsigned>() { return 0; }
template <> DEVICE long long Max::identity<long long>() { return -9223372036854775807ll - 1; }
template <> DEVICE unsigned long long Max::identity<unsigned long long>() { return 0; }
template <> DEVICE int Min::identity<int>() { return 2147483647; }
template <> DEVICE unsigned Min::identity<unsigned>() { return 0xffffffffu; }
template <> DEVICE long long Min::identity<long long>() { return 9223372036854775807ll; }
template <> DEVICE unsigned long long Min::identity<unsigned long long>() { return ~0ull; }

// Sums and products. Integers are unsigned, whose overflow wraps around by definition: signed ones
// have the same bits.
template <typename T> struct Ring { using type = compute_t<T>; };
template <> struct Ring<unsigned char> { using type = unsigned; };
template <> struct Ring<unsigned short> { using type = unsigned; };

// Comparisons. Bools are unsigned char.
template <typename T> struct Order { using type = compute_t<T>; };
template <> struct Order<signed char> { using type = int; };
template <> struct Order<short> { using type = int; };
template <> struct Order<unsigned char> { using type = unsigned; };
template <> struct Order<unsigned short> { using type = unsigned; };

// The type in which R over values of T accumulates.
template <typename R, typename T> struct Running { using type = typename Ring<T>::type; };
template <typename T> struct Running<Max, T> { using type = typename Order<T>::type; };
template <typename T> struct Running<Min, T> { using type = typename Order<T>::type; };
template <typename R, typename T> using running_t = typename Running<R, T>::type;

template <typename P, typename Q> struct Is { static constexpr bool value = false; };
template <typename P> struct Is<P, P> { static constexpr bool value = true; };
