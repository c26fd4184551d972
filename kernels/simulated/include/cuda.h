// Types of the CUDA driver API, as far as CuPy's modules name them.
#pragma once
#include <stddef.h>

#define CUDA_VERSION 13000

typedef int CUdevice, CUresult;
typedef void* CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUevent_st* CUevent;
typedef struct CUfunc_st* CUfunction;
typedef struct CUmod_st* CUmodule;
typedef struct CUstream_st* CUstream;
typedef struct CUlinkState_st* CUlinkState;
typedef struct CUarray_st* CUarray;
typedef int CUjit_option, CUjitInputType, CUfunction_attribute;
typedef int CUarray_format, CUaddress_mode, CUfilter_mode;
typedef size_t (*CUoccupancyB2DSize)(int);
struct CUDA_ARRAY_DESCRIPTOR {
    size_t Width, Height;
    CUarray_format Format;
    unsigned NumChannels;
};
