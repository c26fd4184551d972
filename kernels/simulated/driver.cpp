// The CUDA driver API: a module is a shared library of host code, and a launch is one of the
// emulator's (../emulator.cpp).
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "emulator_runtime.h"
#include "marks.h"
#include "simulated.h"

using namespace simulated;

// A kernel as its library exports it: what calls it, and the sizes of its parameters.
struct KernelEntry { void (*body)(void**); const unsigned* sizes; int count; };

struct CUmod_st {
    void* library;
    unsigned char *shared_begin, *shared_end;   // static shared memory of all its kernels
    uintptr_t begin, end;                       // all of the library's memory
    std::map<std::string, CUfunction> functions;
    std::vector<std::pair<void*, size_t>> variables;
};
struct CUfunc_st {
    KernelEntry entry;
    CUmodule module;
    std::string name;
    int dynamic_limit;
};

// Of emulator.cpp.
struct Launch {
    void (*body)(void**);
    void** arguments;
    unsigned grid[3], block[3];
    unsigned long long dynamic, seed;
    int schedule, seconds;
    unsigned char *shared_begin, *shared_end;
    char* message;
    unsigned long long message_size;
};
extern "C" int gtape_emulator_launch(const Launch*);
namespace gtape_emulator {
bool on_stack(uintptr_t address);
}

namespace {

constexpr int max_dynamic = 232448, usual_dynamic = 48 * 1024;
constexpr char magic[] = "GTAPE SIMULATED IMAGE\n";

CUmodule running_module;
// The values of the launch's parameters and the pointers to them, which each thread copies.
uintptr_t values_begin, values_end, pointers_begin, pointers_end;
int bad_status;                 // of the access that ended the launch
const void* bad_code;

// The file and line of an instruction, by the tool that comes with every compiler.
std::string source_of(const void* code) {
    Dl_info info;
    if (!code || !dladdr(code, &info) || !info.dli_fname) return "";
    char command[1200], line[1024] = "";
    snprintf(command, sizeof command, "addr2line -e '%s' 0x%zx 2>/dev/null", info.dli_fname,
             (size_t)((uintptr_t)code - 1 - (uintptr_t)info.dli_fbase));
    if (FILE* pipe = popen(command, "r")) {
        if (!fgets(line, sizeof line, pipe)) line[0] = 0;
        pclose(pipe);
    }
    line[strcspn(line, "\n")] = 0;
    return line[0] == 0 || line[0] == '?' ? "" : std::string(", ") + line;
}

int schedule() {
    const char* name = getenv("GTAPE_SIMULATED_SCHEDULE");
    return !name || !*name || *name == 'a' ? 0 : *name == 'd' ? 1 : 2;
}

int run(CUfunction f, void** arguments, const unsigned* grid, const unsigned* block,
        unsigned shared) {
    static unsigned long long count;
    static const int order = schedule(), seconds = (int)setting("SECONDS", 120);
    static const unsigned long long seed = setting("SEED", 0);
    Opened opened;
    char text[2048] = "";
    running_module = f->module;
    bad_status = 0;
    bad_code = nullptr;
    Launch launch{f->entry.body, arguments, {grid[0], grid[1], grid[2]},
                  {block[0], block[1], block[2]}, shared, seed * 1000003 + ++count, order, seconds,
                  f->module->shared_begin, f->module->shared_end, text, sizeof text};
    if (!gtape_emulator_launch(&launch)) return 0;
    int status = bad_status ? bad_status : strstr(text, "not there") ? cudaErrorIllegalAddress
                 : strstr(text, "assertion") ? cudaErrorAssert : cudaErrorLaunchFailure;
    std::string said = text;
    if (size_t at = said.find(", at:0"); at != std::string::npos)
        said.replace(at, 6, source_of(bad_code));
    fault(status, "the kernel " + f->name + ": " + said);
    return status;
}

int launch(CUfunction f, const unsigned* grid, const unsigned* block, unsigned shared,
           CUstream stream, void** given) {
    if (!f) return failed(cudaErrorInvalidResourceHandle);
    unsigned long long size = 1ull * block[0] * block[1] * block[2];
    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 2147483647u || grid[1] > 65535 ||
        grid[2] > 65535 || !size || size > 1024 || block[2] > 64 ||
        shared > (unsigned)f->dynamic_limit)
        return failed(cudaErrorInvalidValue);
    // The caller may free the values while a delayed launch or a graph still has need of them.
    auto bytes = std::make_shared<std::vector<char>>();
    std::vector<size_t> places;
    for (int i = 0; i < f->entry.count; ++i) {
        size_t at = (bytes->size() + 15) / 16 * 16;
        bytes->resize(at + f->entry.sizes[i]);
        memcpy(bytes->data() + at, given[i], f->entry.sizes[i]);
        places.push_back(at);
    }
    unsigned gx = grid[0], gy = grid[1], gz = grid[2], bx = block[0], by = block[1], bz = block[2];
    return submit(stream, [=] {
        std::vector<void*> arguments;
        for (size_t at : places) arguments.push_back(bytes->data() + at);
        values_begin = (uintptr_t)bytes->data();
        values_end = values_begin + bytes->size();
        pointers_begin = (uintptr_t)arguments.data();
        pointers_end = pointers_begin + arguments.size() * sizeof(void*);
        unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
        return run(f, arguments.data(), grid, block, shared);
    });
}

struct Range { uintptr_t anchor, begin, end; };
Range own;  // this library's memory, where the emulator keeps indices of threads and blocks

// The memory of the library that has the address `anchor`.
int find_range(dl_phdr_info* info, size_t, void* data) {
    Range* range = (Range*)data;
    uintptr_t begin = ~(uintptr_t)0, end = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (at < begin) begin = at;
        if (at + info->dlpi_phdr[i].p_memsz > end) end = at + info->dlpi_phdr[i].p_memsz;
    }
    if (range->anchor < begin || range->anchor > end) return 0;
    range->begin = begin;
    range->end = end;
    return 1;
}

int opened(CUmodule* to, const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "simulated GPU: %s\n", dlerror());
        return failed(cudaErrorDeviceKernelImageInvalid);
    }
    auto shared = (unsigned char* const*)dlsym(library, "gtape_simulated_shared");
    if (!shared) return failed(cudaErrorDeviceKernelImageInvalid);
    Range range{(uintptr_t)shared[0], 0, 0};
    dl_iterate_phdr(find_range, &range);
    *to = new CUmod_st{library, shared[0], shared[1], range.begin, range.end, {}, {}};
    return 0;
}

struct Visible {  // kernels find the emulator's symbols, whoever loaded this library
    Visible() {
        own.anchor = (uintptr_t)&own;
        dl_iterate_phdr(find_range, &own);
        Dl_info info;
        if (dladdr((void*)&opened, &info)) dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    }
} visible;

int contexts[16];

}  // namespace

extern "C" {

void gtape_simulated_bad_access(uintptr_t address, unsigned long bytes, bool store,
                                const void* code) {
    std::string why;
    bool is_there = allocated((const void*)address, bytes, &why);
    if (is_there) why = description((const void*)address) + ", which nothing has written";
    char text[1200];
    snprintf(text, sizeof text, "a %s of %lu bytes at 0x%lx: %s", store ? "store" : "load", bytes,
             (unsigned long)address, why.c_str());
    bad_status = is_there ? cudaErrorLaunchFailure : cudaErrorIllegalAddress;
    bad_code = code;
    why.~basic_string();  // this stack is never unwound
    new (&why) std::string;
    gtape_emulator::stop(text, "at", 0);
}

void gtape_simulated_bad_alignment(uintptr_t address, unsigned alignment, const void* code) {
    char text[200];
    snprintf(text, sizeof text, "an access that must be aligned to %u bytes, at 0x%lx", alignment,
             (unsigned long)address);
    bad_status = cudaErrorMisalignedAddress;
    bad_code = code;
    gtape_emulator::stop(text, "at", 0);
}

bool gtape_simulated_own(uintptr_t address, unsigned long bytes) {
    using namespace gtape_emulator;
    CUmodule module = running_module;
    uintptr_t end = address + bytes;
    if ((address >= own.begin && end <= own.end) || on_stack(address) || (address >= values_begin && end <= values_end) ||
        (address >= pointers_begin && end <= pointers_end) ||
        (module && address >= module->begin && end <= module->end))
        return true;
    if (address - (uintptr_t)dynamic_shared < (uintptr_t)max_dynamic) return true;
    if (is_device((const void*)address)) return true;
    cudaPointerAttributes found;  // page-locked memory is mapped into the device's addresses
    cudaPointerGetAttributes(&found, (const void*)address);
    return found.type == 1;
}

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* to) { return cudaDriverGetVersion(to); }
int cuDeviceGetCount(int* to) { *to = devices(); return 0; }
int cuDeviceGet(int* to, int number) { *to = number; return number < devices() ? 0 : 101; }
int cuDeviceGetName(char* to, int size, int number) {
    cudaDeviceProp p;
    if (int status = cudaGetDeviceProperties(&p, number)) return status;
    snprintf(to, size, "%s", p.name);
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxGetCurrent(CUcontext* to) { *to = (CUcontext)&contexts[device]; return 0; }
int cuCtxSetCurrent(CUcontext context) {
    if (context) device = (int)((int*)context - contexts);
    return 0;
}
int cuCtxCreate_v2(CUcontext* to, unsigned, int number) {
    *to = (CUcontext)&contexts[number];
    return 0;
}
int cuCtxDestroy_v2(CUcontext) { return 0; }
int cuCtxGetDevice(int* to) { *to = device; return 0; }
int cuStreamGetCtx(CUstream, CUcontext* to) { return cuCtxGetCurrent(to); }

// Libraries in use by path: a second module of the same image has variables of its own.
std::map<std::string, int> in_use;

int opened_once(CUmodule* to, const std::string& path) {
    if (access(path.c_str(), R_OK) || in_use[path]++) return -1;
    return opened(to, path.c_str());
}

// PTX is the path of a library; a cubin is the library itself, and the path where it was made.
int cuModuleLoadData(CUmodule* to, const void* image) {
    if (int status = faulted()) return failed(status);
    const char* text = (const char*)image;
    constexpr size_t length = sizeof magic - 1;
    if (!strncmp(text, "// gtape simulated PTX ", 23)) {
        std::string path(text + 23, strcspn(text + 23, "\n"));
        return opened(to, path.c_str());
    }
    if (strncmp(text, magic, length)) return failed(cudaErrorDeviceKernelImageInvalid);
    size_t size;
    memcpy(&size, text + length, sizeof size);
    const char* library = text + length + sizeof size;
    int status = opened_once(to, library + size);
    if (status >= 0) return status;
    char path[] = "/tmp/gtape-simulated.XXXXXX";  // the loader knows libraries by their files
    int file = mkstemp(path);
    if (file < 0 || write(file, library, size) != (ssize_t)size)
        return failed(cudaErrorMemoryAllocation);
    status = opened(to, path);
    close(file);
    unlink(path);
    return status;
}
int cuModuleLoad(CUmodule* to, const char* name) {
    FILE* file = fopen(name, "rb");
    if (!file) return failed(cudaErrorFileNotFound);
    std::string data;
    char buffer[65536];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, file));) data.append(buffer, n);
    fclose(file);
    return cuModuleLoadData(to, data.c_str());
}
int cuModuleUnload(CUmodule) { return 0; }  // a graph may hold its kernels

int cuModuleGetFunction(CUfunction* to, CUmodule module, const char* name) {
    static std::mutex guard;
    std::lock_guard<std::mutex> held(guard);
    CUfunction& found = module->functions[name];
    if (!found) {
        std::string symbol = std::string("gtape_kernel_") + name;
        auto entry = (const KernelEntry*)dlsym(module->library, symbol.c_str());
        if (!entry) {
            module->functions.erase(name);
            *to = nullptr;
            return failed(cudaErrorSymbolNotFound);
        }
        found = new CUfunc_st{*entry, module, name, usual_dynamic};
    }
    *to = found;
    return 0;
}
int cuModuleGetGlobal_v2(void** to, size_t* bytes, CUmodule module, const char* name) {
    void* at = dlsym(module->library, name);
    auto size = (const size_t*)dlsym(module->library, (std::string("gtape_size_") + name).c_str());
    if (!at || !size) return failed(cudaErrorSymbolNotFound);
    add_range(at, *size);
    if (to) *to = at;
    if (bytes) *bytes = *size;
    return 0;
}

int cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, CUstream stream, void** given, void** extra) {
    if (extra) return failed(cudaErrorNotSupported);
    unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    return launch(f, grid, block, shared, stream, given);
}
int cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, CUstream, void**) {
    fprintf(stderr, "simulated GPU: cooperative launches are not simulated\n");
    return failed(cudaErrorNotSupported);
}
int cuFuncGetAttribute(int* to, int which, CUfunction f) {
    switch (which) {  // NVIDIA's numbers of CUfunction_attribute
        case 0: *to = 1024; break;                                           // threads of a block
        case 1: *to = (int)(f->module->shared_end - f->module->shared_begin); break;
        case 4: *to = 32; break;                                             // registers
        case 5: case 6: *to = compute_capability(); break;
        case 8: *to = f->dynamic_limit; break;
        default: *to = 0;
    }
    return 0;
}
int cuFuncSetAttribute(CUfunction f, int which, int value) {
    if (which != 8) return 0;
    if (value < 0 || value > max_dynamic) return failed(cudaErrorInvalidValue);
    f->dynamic_limit = value;
    return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* to, CUfunction, int block, size_t) {
    *to = block <= 0 ? 0 : 2048 / block > 32 ? 32 : 2048 / block;
    return 0;
}
int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction, CUoccupancyB2DSize, size_t,
                                     int limit) {
    *block = limit ? limit : 1024;
    *grid = 2 * (int)setting("MULTIPROCESSORS", 4);
    return 0;
}

static int no_linking() {
    fprintf(stderr, "simulated GPU: linking of device code is not simulated\n");
    return failed(cudaErrorNotSupported);
}
int cuLinkCreate_v2(unsigned, int*, void**, void**) { return no_linking(); }
int cuLinkAddData_v2(void*, int, void*, size_t, const char*, unsigned, int*, void**) {
    return no_linking();
}
int cuLinkAddFile_v2(void*, int, const char*, unsigned, int*, void**) { return no_linking(); }
int cuLinkComplete(void*, void**, size_t*) { return no_linking(); }
int cuLinkDestroy(void*) { return no_linking(); }

}  // extern "C"
