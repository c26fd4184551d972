// Of Thrust, CuPy's complex numbers need only its namespace.
#pragma once
#define THRUST_NAMESPACE_BEGIN namespace thrust {
#define THRUST_NAMESPACE_END }
