// Errors of the simulated GPU: the last one of each thread, and faults, after which nothing works.
#include <mutex>

#include "simulated.h"

namespace simulated {
namespace {

struct Named { int status; const char *name, *driver_name, *text; };

constexpr Named table[] = {
    {0, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "cudaErrorDeviceKernelImageInvalid", "CUDA_ERROR_INVALID_IMAGE",
     "device kernel image is invalid"},
    {217, "cudaErrorPeerAccessUnsupported", "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {301, "cudaErrorFileNotFound", "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {705, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {710, "cudaErrorAssert", "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {716, "cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED",
     "operation not supported by the simulated GPU"},
    {900, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {903, "cudaErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {904, "cudaErrorStreamCaptureUnjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing stream has unjoined work"},
    {906, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
};

const Named* find(int status) {
    for (const Named& named : table)
        if (named.status == status) return &named;
    return nullptr;
}

thread_local int last;
std::mutex guard;
int fault_status;
std::string fault_text;

}  // namespace

int failed(int status) {
    if (status) last = status;
    return status;
}

void fault(int status, const std::string& text) {
    fprintf(stderr, "simulated GPU: %s\n", text.c_str());
    std::lock_guard<std::mutex> held(guard);
    if (fault_status) return;  // what follows is a consequence
    fault_status = status;
    fault_text = text;
}

int faulted() {
    std::lock_guard<std::mutex> held(guard);
    return fault_status;
}

void forget_fault() {
    std::lock_guard<std::mutex> held(guard);
    fault_status = last = 0;
    fault_text.clear();
}

const char* error_name(int status) {
    const Named* named = find(status);
    return named ? named->name : "cudaErrorUnknown";
}

}  // namespace simulated

using namespace simulated;

extern "C" {

const char* cudaGetErrorName(int status) { return error_name(status); }

const char* cudaGetErrorString(int status) {
    static thread_local std::string text;
    const Named* named = find(status);
    text = named ? named->text : "unknown error";
    std::lock_guard<std::mutex> held(guard);
    if (status && status == fault_status) text += " (simulated GPU: " + fault_text + ")";
    return text.c_str();
}

int cudaGetLastError() {
    int status = last;
    last = faulted();  // a fault stays
    return status;
}

int cudaPeekAtLastError() { return last; }

int cuGetErrorName(int status, const char** name) {
    const Named* named = find(status);
    *name = named ? named->driver_name : "CUDA_ERROR_UNKNOWN";
    return 0;
}

int cuGetErrorString(int status, const char** text) {
    *text = cudaGetErrorString(status);
    return 0;
}

// What a test does that made a kernel fail: as if a new process had begun.
void gtape_simulated_forget_fault() { forget_fault(); }

}  // extern "C"
