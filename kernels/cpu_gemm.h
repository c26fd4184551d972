// Matrix products: C = A B, or C += A B where `accumulate` is not 0.
//
// A is (m, k), B is (k, n). Their elements may lie anywhere: `a_row` elements from a row to the
// next and `a_column` from a column to the next, so transposing is a matter of strides. The columns
// of C lie side by side. C must not overlap A or B. Every element of C is one sum in the order of
// k: results do not depend on the number of threads.
#pragma once

#include "cpu_threads.h"

GTAPE_EXPORT void gtape_gemm_f32(long m, long n, long k, const float* a, long a_row, long a_column,
                                 const float* b, long b_row, long b_column, float* c, long c_row,
                                 int accumulate);
GTAPE_EXPORT void gtape_gemm_f64(long m, long n, long k, const double* a, long a_row,
                                 long a_column, const double* b, long b_row, long b_column,
                                 double* c, long c_row, int accumulate);

// `batch` products of one shape; number i is that of a + a_offsets[i], b + b_offsets[i] and
// c + c_offsets[i]. Where results overlap they must be the same and not accumulate.
GTAPE_EXPORT void gtape_gemm_batched_f32(long m, long n, long k, const float* a, long a_row,
                                         long a_column, const float* b, long b_row, long b_column,
                                         float* c, long c_row, int accumulate, long batch,
                                         const long* a_offsets, const long* b_offsets,
                                         const long* c_offsets);
GTAPE_EXPORT void gtape_gemm_batched_f64(long m, long n, long k, const double* a, long a_row,
                                         long a_column, const double* b, long b_row, long b_column,
                                         double* c, long c_row, int accumulate, long batch,
                                         const long* a_offsets, const long* b_offsets,
                                         const long* c_offsets);
