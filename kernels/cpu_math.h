// Scalar functions of generated CPU code: every name that the scalar ops of gtape/ops are spelled
// with, for float and double, and for integers where an op takes them.
//
// Generated code lives inside `namespace gtape_cpu`, so that `exp(x)` names these functions and
// not those of <math.h>.
#pragma once
#include "cpu_math_base.h"
#include "cpu_math_double.h"
#include "cpu_math_double_trig.h"
#include "cpu_math_float.h"
#include "cpu_math_float_trig.h"
#include "cpu_math_special.h"
