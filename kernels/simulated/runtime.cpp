// The CUDA runtime API but for memory (memory.cpp), streams (streams.cpp) and errors (errors.cpp):
// devices, copies, and what is not simulated.
#include <map>

#include "simulated.h"

using namespace simulated;

namespace {

constexpr int shared_of_block = 232448, shared_of_multiprocessor = 228 * 1024;
constexpr int version = 13000;

// Attributes that are the same for every GPU since compute capability 9.0, by NVIDIA's numbers.
const std::map<int, int> attributes = {
    {1, 1024}, {2, 1024}, {3, 1024}, {4, 64},         // threads of a block, in x, y, z
    {5, 2147483647}, {6, 65535}, {7, 65535},          // blocks of a grid
    {8, 49152}, {9, 65536}, {10, 32}, {12, 65536},    // shared and constant memory, warp, registers
    {11, 2147483647}, {13, 1000000}, {14, 512}, {15, 1}, {19, 1}, {31, 1}, {36, 1000000},
    {37, 5120}, {38, 50 << 20}, {39, 2048}, {40, 3}, {41, 1}, {78, 1}, {79, 1}, {80, 1},
    {81, shared_of_multiprocessor}, {82, 65536}, {83, 1}, {97, shared_of_block}, {106, 32},
    {111, 1024}, {115, 1}};

bool is_there(int number) { return number >= 0 && number < devices(); }

int attribute(int which, int number) {
    switch (which) {
        case 16: return (int)setting("MULTIPROCESSORS", 4);
        case 33: return number + 1;  // PCI bus
        case 75: return compute_capability() / 10;
        case 76: return compute_capability() % 10;
    }
    auto found = attributes.find(which);
    return found == attributes.end() ? 0 : found->second;
}

bool peers() { return setting("PEERS", 1) != 0; }

enum { to_device = 1, from_device = 2, on_device = 3 };

// What is wrong with the ends of a copy, found when it is submitted as on a GPU.
int refused(void* to, const void* from, size_t bytes, int kind) {
    if (!bytes) return 0;
    auto bad = [&](const void* p, bool must) {
        return (must || is_device(p)) && !allocated(p, bytes);
    };
    if (bad(to, kind == to_device || kind == on_device)) return failed(cudaErrorInvalidValue);
    if (bad(from, kind == from_device || kind == on_device)) return failed(cudaErrorInvalidValue);
    return 0;
}

int copied(void* to, const void* from, size_t bytes) {
    Opened opened;
    memmove(to, from, bytes);
    copy_marks(to, from, bytes);
    return 0;
}

bool pageable(const void* p) {
    cudaPointerAttributes found;
    cudaPointerGetAttributes(&found, p);
    return found.type == 0;
}

int copy(void* to, const void* from, size_t bytes, int kind, CUstream stream) {
    if (int status = refused(to, from, bytes, kind)) return status;
    if (!is_device(from) && pageable(from) && !is_captured(stream)) {
        // A GPU reads pageable memory before the call returns, page-locked memory when it likes.
        std::string kept((const char*)from, bytes);
        return submit(stream, [=] { return copied(to, kept.data(), bytes); });
    }
    int status = submit(stream, [=] { return copied(to, from, bytes); });
    if (!status && !is_device(to) && pageable(to) && !is_captured(stream))
        return cudaStreamSynchronize(stream);
    return status;
}

}  // namespace

extern "C" {

int cudaDriverGetVersion(int* to) { *to = version; return 0; }
int cudaRuntimeGetVersion(int* to) { *to = version; return 0; }

int cudaGetDevice(int* to) { *to = device; return 0; }
int cudaGetDeviceCount(int* to) {
    *to = devices();
    return *to ? 0 : failed(cudaErrorNoDevice);
}
int cudaSetDevice(int number) {
    if (!is_there(number)) return failed(cudaErrorInvalidDevice);
    device = number;
    return 0;
}
int cudaDeviceReset() { forget_fault(); return 0; }
int cudaDeviceGetAttribute(int* to, int which, int number) {
    if (!is_there(number)) return failed(cudaErrorInvalidDevice);
    *to = attribute(which, number);
    return 0;
}
int cudaDeviceGetPCIBusId(char* to, int size, int number) {
    if (!is_there(number)) return failed(cudaErrorInvalidDevice);
    snprintf(to, size, "0000:%02X:00.0", number + 1);
    return 0;
}
int cudaDeviceGetByPCIBusId(int* to, const char* text) {
    unsigned domain, bus;
    if (sscanf(text, "%x:%x", &domain, &bus) != 2 || !is_there((int)bus - 1))
        return failed(cudaErrorInvalidDevice);
    *to = (int)bus - 1;
    return 0;
}

int cudaGetDeviceProperties(cudaDeviceProp* p, int number) {
    if (!is_there(number)) return failed(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "gtape simulated GPU (kernels run on the CPU)");
    memcpy(p->uuid.bytes, "simulated", 9);
    p->uuid.bytes[15] = (char)number;
    p->totalGlobalMem = memory_of_device();
    p->sharedMemPerBlock = attribute(8, number);
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->totalConstMem = 65536;
    p->major = attribute(75, number);
    p->minor = attribute(76, number);
    p->textureAlignment = 512;
    p->texturePitchAlignment = 32;
    p->multiProcessorCount = attribute(16, number);
    p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = p->managedMemory = 1;
    p->pciBusID = attribute(33, number);
    p->asyncEngineCount = 3;
    p->memoryBusWidth = 5120;
    p->l2CacheSize = 50 << 20;
    p->maxThreadsPerMultiProcessor = 2048;
    p->streamPrioritiesSupported = p->globalL1CacheSupported = p->localL1CacheSupported = 1;
    p->sharedMemPerMultiprocessor = shared_of_multiprocessor;
    p->computePreemptionSupported = p->memoryPoolsSupported = 1;
    p->sharedMemPerBlockOptin = shared_of_block;
    p->maxBlocksPerMultiProcessor = 32;
    p->reservedSharedMemPerBlock = 1024;
    return 0;
}

static bool enabled[16][16];
int cudaDeviceCanAccessPeer(int* to, int a, int b) {
    if (!is_there(a) || !is_there(b)) return failed(cudaErrorInvalidDevice);
    *to = a != b && peers();
    return 0;
}
int cudaDeviceEnablePeerAccess(int other, unsigned) {
    if (!is_there(other)) return failed(cudaErrorInvalidDevice);
    if (!peers()) return failed(cudaErrorPeerAccessUnsupported);
    if (enabled[device][other]) return failed(cudaErrorPeerAccessAlreadyEnabled);
    enabled[device][other] = true;
    return 0;
}
int cudaDeviceDisablePeerAccess(int other) {
    if (!is_there(other)) return failed(cudaErrorInvalidDevice);
    if (!enabled[device][other]) return failed(cudaErrorPeerAccessNotEnabled);
    enabled[device][other] = false;
    return 0;
}

static size_t limits[16] = {1024, 1 << 20, 8 << 20};
int cudaDeviceGetLimit(size_t* to, int which) {
    if (which < 0 || which > 15) return failed(cudaErrorInvalidValue);
    *to = limits[which];
    return 0;
}
int cudaDeviceSetLimit(int which, size_t value) {
    if (which < 0 || which > 15) return failed(cudaErrorInvalidValue);
    limits[which] = value;
    return 0;
}

// ---------------------------------------------------------------- copies

int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, CUstream stream) {
    return copy(to, from, bytes, kind, stream);
}
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
    if (int status = copy(to, from, bytes, kind, nullptr)) return status;
    return cudaStreamSynchronize(nullptr);
}
int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, CUstream stream) {
    return copy(to, from, bytes, on_device, stream);
}
int cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
    return cudaMemcpy(to, from, bytes, on_device);
}
int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t height, int kind, CUstream stream) {
    for (size_t i = 0; i < height; ++i)
        if (int status = copy((char*)to + i * to_pitch, (const char*)from + i * from_pitch, width,
                              kind, stream))
            return status;
    return 0;
}
int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                 size_t height, int kind) {
    if (int status = cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind,
                                       nullptr))
        return status;
    return cudaStreamSynchronize(nullptr);
}
int cudaMemsetAsync(void* to, int value, size_t bytes, CUstream stream) {
    if (bytes && (!is_device(to) || !allocated(to, bytes))) return failed(cudaErrorInvalidValue);
    return submit(stream, [=] {
        Opened opened;
        memset(to, value, bytes);
        mark_written(to, bytes);
        return 0;
    });
}
int cudaMemset(void* to, int value, size_t bytes) {
    return cudaMemsetAsync(to, value, bytes, nullptr);
}
int cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, int, CUstream) { return 0; }
int cudaMemAdvise(const void*, size_t, int, cudaMemLocation) { return 0; }
int cudaProfilerStart() { return 0; }
int cudaProfilerStop() { return 0; }

// ---------------------------------------------------------------- not simulated

static int not_simulated(const char* name) {
    fprintf(stderr, "simulated GPU: %s is not simulated\n", name);
    return failed(cudaErrorNotSupported);
}
#define NOT_SIMULATED(name, ...) \
    int name(__VA_ARGS__) { return not_simulated(#name); }
NOT_SIMULATED(cudaIpcCloseMemHandle, void*)
NOT_SIMULATED(cudaIpcGetEventHandle, cudaIpcEventHandle_t*, CUevent)
NOT_SIMULATED(cudaIpcGetMemHandle, cudaIpcMemHandle_t*, void*)
NOT_SIMULATED(cudaIpcOpenEventHandle, CUevent*, cudaIpcEventHandle_t)
NOT_SIMULATED(cudaIpcOpenMemHandle, void**, cudaIpcMemHandle_t, unsigned)
NOT_SIMULATED(cudaMalloc3DArray, void**, const cudaChannelFormatDesc*, cudaExtent, unsigned)
NOT_SIMULATED(cudaMallocArray, void**, const cudaChannelFormatDesc*, size_t, size_t, unsigned)
NOT_SIMULATED(cudaFreeArray, void*)
NOT_SIMULATED(cudaMemcpy2DFromArray, void*, size_t, void*, size_t, size_t, size_t, size_t, int)
NOT_SIMULATED(cudaMemcpy2DFromArrayAsync, void*, size_t, void*, size_t, size_t, size_t, size_t, int,
              CUstream)
NOT_SIMULATED(cudaMemcpy2DToArray, void*, size_t, size_t, const void*, size_t, size_t, size_t, int)
NOT_SIMULATED(cudaMemcpy2DToArrayAsync, void*, size_t, size_t, const void*, size_t, size_t, size_t,
              int, CUstream)
NOT_SIMULATED(cudaMemcpy3D, cudaMemcpy3DParms*)
NOT_SIMULATED(cudaMemcpy3DAsync, cudaMemcpy3DParms*, CUstream)
NOT_SIMULATED(cudaCreateTextureObject, cudaTextureObject_t*, const cudaResourceDesc*,
              const cudaTextureDesc*, const cudaResourceViewDesc*)
NOT_SIMULATED(cudaDestroyTextureObject, cudaTextureObject_t)
NOT_SIMULATED(cudaGetChannelDesc, cudaChannelFormatDesc*, void*)
NOT_SIMULATED(cudaGetTextureObjectResourceDesc, cudaResourceDesc*, cudaTextureObject_t)
NOT_SIMULATED(cudaGetTextureObjectTextureDesc, cudaTextureDesc*, cudaTextureObject_t)
NOT_SIMULATED(cudaCreateSurfaceObject, cudaSurfaceObject_t*, const cudaResourceDesc*)
NOT_SIMULATED(cudaDestroySurfaceObject, cudaSurfaceObject_t)
NOT_SIMULATED(cudaGraphDebugDotPrint, cudaGraph_t, const char*, unsigned)

}  // extern "C"
