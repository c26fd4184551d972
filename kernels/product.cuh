// The product, as an operation to reduce and scan with; beside Sum, Max and Min of gtape.cuh.
#pragma once
#include "gtape.cuh"

struct Product {
    template <typename A> static DEVICE A identity() { return A(1); }
    template <typename A> static DEVICE A combine(A a, A b) { return a * b; }
};
