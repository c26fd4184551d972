// Classes by number, in integers of any dtype.
#pragma once
#include "gtape.cuh"

// labels[i]. `kind` is the size of an element in bytes, negative where it has no sign; a label too
// large for a long long becomes negative, which is no class either.
DEVICE long long class_at(const void* labels, long long kind, long long i) {
    switch (kind) {
        case 1: return static_cast<const signed char*>(labels)[i];
        case 2: return static_cast<const short*>(labels)[i];
        case 4: return static_cast<const int*>(labels)[i];
        case -1: return static_cast<const unsigned char*>(labels)[i];
        case -2: return static_cast<const unsigned short*>(labels)[i];
        case -4: return static_cast<const unsigned int*>(labels)[i];
        default: return static_cast<const long long*>(labels)[i];
    }
}
