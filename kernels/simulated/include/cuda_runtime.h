// The CUDA runtime API, as far as CuPy's runtime module calls it. The names of types, functions and
// fields are NVIDIA's; numbers stand for its enumerations, which are ints at the boundary.
#pragma once
#ifndef GTAPE_EMULATOR  // kernels that include it need nothing of it
#include <cuda.h>

typedef int cudaError_t, cudaDataType, cudaDeviceAttr, cudaMemoryAdvise, cudaStreamCaptureMode;
typedef int cudaLimit, cudaChannelFormatKind, cudaResourceType, cudaTextureAddressMode;
typedef int cudaTextureFilterMode, cudaTextureReadMode, cudaMemcpyKind, cudaMemPoolAttr;
typedef int cudaMemAllocationType, cudaMemAllocationHandleType, cudaMemLocationType;
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive, cudaStreamCaptureStatusInvalidated
};
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraph_st* cudaGraphExec_t;
typedef void *cudaGraphNode_t, *cudaArray_t, *cudaMipmappedArray_t, *cudaMemPool_t;
typedef unsigned long long cudaTextureObject_t, cudaSurfaceObject_t;
typedef void (*cudaStreamCallback_t)(cudaStream_t, cudaError_t, void*);
typedef void (*cudaHostFn_t)(void*);

struct cudaChannelFormatDesc { int x, y, z, w; cudaChannelFormatKind f; };
struct cudaResourceViewDesc;
struct cudaExtent { size_t width, height, depth; };
struct cudaPos { size_t x, y, z; };
struct cudaPitchedPtr { void* ptr; size_t pitch, xsize, ysize; };
struct cudaMemcpy3DParms {
    cudaArray_t srcArray; cudaPos srcPos; cudaPitchedPtr srcPtr;
    cudaArray_t dstArray; cudaPos dstPos; cudaPitchedPtr dstPtr;
    cudaExtent extent; cudaMemcpyKind kind;
};
struct cudaResourceDesc {
    cudaResourceType resType;
    union {
        struct { cudaArray_t array; } array;
        struct { cudaMipmappedArray_t mipmap; } mipmap;
        struct { void* devPtr; cudaChannelFormatDesc desc; size_t sizeInBytes; } linear;
        struct {
            void* devPtr; cudaChannelFormatDesc desc; size_t width, height, pitchInBytes;
        } pitch2D;
    } res;
};
struct cudaTextureDesc {
    cudaTextureAddressMode addressMode[3]; cudaTextureFilterMode filterMode;
    cudaTextureReadMode readMode; int sRGB; float borderColor[4]; int normalizedCoords;
    unsigned maxAnisotropy;
};
typedef struct { unsigned char reserved[64]; } cudaIpcMemHandle_t, cudaIpcEventHandle_t;
typedef struct { char bytes[16]; } cudaUUID_t;
struct cudaMemLocation { cudaMemLocationType type; int id; };
struct cudaMemPoolProps {
    cudaMemAllocationType allocType; cudaMemAllocationHandleType handleTypes;
    cudaMemLocation location; void* win32SecurityAttributes; size_t maxSize;
    unsigned char reserved[56];
};
struct cudaPointerAttributes { int type, device; void *devicePointer, *hostPointer; };
struct cudaDeviceProp {
    char name[256]; cudaUUID_t uuid; char luid[8]; unsigned luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock; int regsPerBlock, warpSize; size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3]; size_t totalConstMem;
    int major, minor; size_t textureAlignment, texturePitchAlignment;
    int multiProcessorCount, integrated, canMapHostMemory;
    int maxTexture1D, maxTexture1DMipmap, maxTexture2D[2], maxTexture2DMipmap[2];
    int maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3];
    int maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3];
    int maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2], maxSurface3D[3];
    int maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap;
    int maxSurfaceCubemapLayered[2]; size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
    int asyncEngineCount, unifiedAddressing, memoryBusWidth, l2CacheSize;
    int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
    int globalL1CacheSupported, localL1CacheSupported; size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
    int hostNativeAtomicSupported, pageableMemoryAccess, concurrentManagedAccess;
    int computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch;
    size_t sharedMemPerBlockOptin; int pageableMemoryAccessUsesHostPageTables;
    int directManagedMemAccessFromHost, maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock; int hostRegisterSupported, sparseCudaArraySupported;
    int hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported, memoryPoolsSupported;
    int gpuDirectRDMASupported; unsigned gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering; unsigned memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
    int unifiedFunctionPointers, deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned gpuPciDeviceID, gpuPciSubsystemID; int hostNumaMultinodeIpcSupported;
};

extern "C" {
const char* cudaGetErrorName(int);
const char* cudaGetErrorString(int);
int cudaGetLastError();
int cudaPeekAtLastError();
int cudaDriverGetVersion(int*);
int cudaRuntimeGetVersion(int*);

int cudaGetDevice(int*);
int cudaGetDeviceCount(int*);
int cudaSetDevice(int);
int cudaDeviceSynchronize();
int cudaDeviceReset();
int cudaDeviceGetAttribute(int*, int, int);
int cudaDeviceGetByPCIBusId(int*, const char*);
int cudaDeviceGetPCIBusId(char*, int, int);
int cudaGetDeviceProperties(cudaDeviceProp*, int);
int cudaDeviceCanAccessPeer(int*, int, int);
int cudaDeviceEnablePeerAccess(int, unsigned);
int cudaDeviceDisablePeerAccess(int);
int cudaDeviceGetLimit(size_t*, int);
int cudaDeviceSetLimit(int, size_t);

int cudaMalloc(void**, size_t);
int cudaMallocManaged(void**, size_t, unsigned);
int cudaMallocAsync(void**, size_t, CUstream);
int cudaMallocFromPoolAsync(void**, size_t, void*, CUstream);
int cudaHostAlloc(void**, size_t, unsigned);
int cudaHostRegister(void*, size_t, unsigned);
int cudaHostUnregister(void*);
int cudaFree(void*);
int cudaFreeHost(void*);
int cudaFreeAsync(void*, CUstream);
int cudaMemGetInfo(size_t*, size_t*);
int cudaPointerGetAttributes(cudaPointerAttributes*, const void*);
int cudaDeviceGetDefaultMemPool(void**, int);
int cudaDeviceGetMemPool(void**, int);
int cudaDeviceSetMemPool(int, void*);
int cudaMemPoolCreate(void**, cudaMemPoolProps*);
int cudaMemPoolDestroy(void*);
int cudaMemPoolTrimTo(void*, size_t);
int cudaMemPoolGetAttribute(void*, int, void*);
int cudaMemPoolSetAttribute(void*, int, void*);

int cudaMemcpy(void*, const void*, size_t, int);
int cudaMemcpyAsync(void*, const void*, size_t, int, CUstream);
int cudaMemcpyPeer(void*, int, const void*, int, size_t);
int cudaMemcpyPeerAsync(void*, int, const void*, int, size_t, CUstream);
int cudaMemcpy2D(void*, size_t, const void*, size_t, size_t, size_t, int);
int cudaMemcpy2DAsync(void*, size_t, const void*, size_t, size_t, size_t, int, CUstream);
int cudaMemset(void*, int, size_t);
int cudaMemsetAsync(void*, int, size_t, CUstream);
int cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, int, CUstream);
int cudaMemAdvise(const void*, size_t, int, cudaMemLocation);

int cudaStreamCreate(CUstream*);
int cudaStreamCreateWithFlags(CUstream*, unsigned);
int cudaStreamCreateWithPriority(CUstream*, unsigned, int);
int cudaStreamGetFlags(CUstream, unsigned*);
int cudaStreamGetPriority(CUstream, int*);
int cudaStreamDestroy(CUstream);
int cudaStreamSynchronize(CUstream);
int cudaStreamQuery(CUstream);
int cudaStreamAddCallback(CUstream, cudaStreamCallback_t, void*, unsigned);
int cudaLaunchHostFunc(CUstream, cudaHostFn_t, void*);
int cudaStreamWaitEvent(CUstream, CUevent, unsigned);
int cudaStreamBeginCapture(CUstream, int);
int cudaStreamEndCapture(CUstream, cudaGraph_t*);
int cudaStreamIsCapturing(CUstream, cudaStreamCaptureStatus*);
int cudaEventCreate(CUevent*);
int cudaEventCreateWithFlags(CUevent*, unsigned);
int cudaEventDestroy(CUevent);
int cudaEventElapsedTime(float*, CUevent, CUevent);
int cudaEventQuery(CUevent);
int cudaEventRecord(CUevent, CUstream);
int cudaEventSynchronize(CUevent);
int cudaGraphDestroy(cudaGraph_t);
int cudaGraphExecDestroy(cudaGraphExec_t);
int cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long);
int cudaGraphLaunch(cudaGraphExec_t, CUstream);
int cudaGraphUpload(cudaGraphExec_t, CUstream);
int cudaGraphDebugDotPrint(cudaGraph_t, const char*, unsigned);
int cudaProfilerStart();
int cudaProfilerStop();

// Not simulated: they answer cudaErrorNotSupported.
int cudaIpcCloseMemHandle(void*);
int cudaIpcGetEventHandle(cudaIpcEventHandle_t*, CUevent);
int cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*);
int cudaIpcOpenEventHandle(CUevent*, cudaIpcEventHandle_t);
int cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned);
int cudaMalloc3DArray(void**, const cudaChannelFormatDesc*, cudaExtent, unsigned);
int cudaMallocArray(void**, const cudaChannelFormatDesc*, size_t, size_t, unsigned);
int cudaFreeArray(void*);
int cudaMemcpy2DFromArray(void*, size_t, void*, size_t, size_t, size_t, size_t, int);
int cudaMemcpy2DFromArrayAsync(void*, size_t, void*, size_t, size_t, size_t, size_t, int, CUstream);
int cudaMemcpy2DToArray(void*, size_t, size_t, const void*, size_t, size_t, size_t, int);
int cudaMemcpy2DToArrayAsync(void*, size_t, size_t, const void*, size_t, size_t, size_t, int,
                             CUstream);
int cudaMemcpy3D(cudaMemcpy3DParms*);
int cudaMemcpy3DAsync(cudaMemcpy3DParms*, CUstream);
int cudaCreateTextureObject(cudaTextureObject_t*, const cudaResourceDesc*, const cudaTextureDesc*,
                            const cudaResourceViewDesc*);
int cudaDestroyTextureObject(cudaTextureObject_t);
int cudaGetChannelDesc(cudaChannelFormatDesc*, void*);
int cudaGetTextureObjectResourceDesc(cudaResourceDesc*, cudaTextureObject_t);
int cudaGetTextureObjectTextureDesc(cudaTextureDesc*, cudaTextureObject_t);
int cudaCreateSurfaceObject(cudaSurfaceObject_t*, const cudaResourceDesc*);
int cudaDestroySurfaceObject(cudaSurfaceObject_t);
}

static inline cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) { return {w, h, d}; }
static inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
static inline cudaPitchedPtr make_cudaPitchedPtr(void* d, size_t p, size_t x, size_t y) {
    return {d, p, x, y};
}
enum {
    cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2,
    cudaErrorNoDevice = 100, cudaErrorInvalidDevice = 101, cudaErrorDeviceKernelImageInvalid = 200,
    cudaErrorPeerAccessUnsupported = 217, cudaErrorFileNotFound = 301,
    cudaErrorInvalidResourceHandle = 400, cudaErrorSymbolNotFound = 500, cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700, cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorPeerAccessNotEnabled = 705, cudaErrorContextIsDestroyed = 709, cudaErrorAssert = 710,
    cudaErrorMisalignedAddress = 716, cudaErrorLaunchFailure = 719, cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900, cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureUnmatched = 903, cudaErrorStreamCaptureUnjoined = 904,
    cudaErrorStreamCaptureImplicit = 906, cudaErrorCapturedEvent = 907,
    cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76
};
#endif
