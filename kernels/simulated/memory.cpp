// Device memory on the host: a region of addresses that only kernels, copies and libraries may touch.
//
// Beside each byte stands a mark: whether it belongs to an array, and whether anything has written
// it. Kernels look at the marks before every access (checks.cpp). Between operations the region is
// closed by page protection, so that host code that follows a device pointer is found out.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>

#include "marks.h"
#include "simulated.h"

uintptr_t gtape_simulated_region, gtape_simulated_region_bytes;
unsigned char* gtape_simulated_marks;
bool gtape_simulated_check_memory, gtape_simulated_check_unwritten;

namespace simulated {

thread_local int device;

namespace {

constexpr size_t unit = 512;            // cudaMalloc aligns to 256 at least; CuPy's pool counts in 512
constexpr size_t zone = 512;            // behind each allocation, so that neighbours do not touch
constexpr size_t poisoned = 64 << 20;   // of a larger allocation only so much gets NaN: it takes time

enum class Kind { host = 1, device = 2, managed = 3 };
struct Allocation { size_t bytes; int device; Kind kind; };
struct Array { size_t bytes; std::string place; bool freed; };
struct Device {
    uintptr_t begin, top, end, next;    // top: the highest address ever in use; next: where to look
    size_t used, peak;
    std::map<uintptr_t, size_t> gaps;   // below top, not in use
};

std::recursive_mutex guard;
std::map<uintptr_t, Allocation> allocations;
std::map<uintptr_t, Array> arrays;      // what CuPy's pools gave out of allocations, as told by Python
std::map<uintptr_t, size_t> variables;  // of modules, in the memory of their libraries
Device table[16];
size_t span;                            // of one device's addresses
std::atomic<int> openings;
struct sigaction before;

size_t rounded(size_t bytes) { return (bytes + unit - 1) / unit * unit; }

bool inside(const void* p) {
    return (uintptr_t)p - gtape_simulated_region < gtape_simulated_region_bytes;
}

template <typename Value> auto below(std::map<uintptr_t, Value>& map, const void* p) {
    auto at = map.upper_bound((uintptr_t)p);
    return at == map.begin() ? map.end() : --at;
}

Allocation* find(const void* p) {
    auto at = below(allocations, p);
    if (at == allocations.end() || (uintptr_t)p - at->first >= at->second.bytes) return nullptr;
    return &at->second;
}

void protect(int mode) {
    for (int i = 0; i < devices(); ++i)
        if (table[i].top > table[i].begin)
            mprotect((void*)table[i].begin, table[i].top - table[i].begin, mode);
}

// Says what was touched, then lets the fault go its way: Python's faulthandler tells the line.
void touched(int signal, siginfo_t* info, void*) {
    if (inside(info->si_addr) && !openings) {
        std::string text = "simulated GPU: code of the host touched device memory, " +
                           description(info->si_addr) + "; copy it to the host first (array.get(), "
                           "cupy.asnumpy, tensor.numpy())\n";
        if (write(2, text.data(), text.size()) < 0) _exit(139);
    }
    sigaction(signal, &before, nullptr);  // the instruction is repeated
}

struct Start {
    Start() {
        span = (memory_of_device() / 4 * 5 + (64 << 20)) / 4096 * 4096;  // zones take room too
        size_t all = span * (devices() ? devices() : 1);
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void* region = mmap(nullptr, all, PROT_NONE, flags, -1, 0);
        void* marks = mmap(nullptr, all, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (region == MAP_FAILED || marks == MAP_FAILED) {
            fprintf(stderr, "simulated GPU: no address space for %d devices of %zu MB; set "
                    "GTAPE_SIMULATED_MEMORY_MB lower\n", devices(), memory_of_device() >> 20);
            abort();
        }
        gtape_simulated_region = (uintptr_t)region;
        gtape_simulated_region_bytes = all;
        gtape_simulated_marks = (unsigned char*)marks;
        gtape_simulated_check_memory = checks("memory");
        gtape_simulated_check_unwritten = checks("unwritten");
        for (int i = 0; i < devices(); ++i) {
            uintptr_t begin = (uintptr_t)region + i * span;
            table[i] = {begin, begin, begin + span, begin, 0, 0, {}};
        }
        if (!checks("host")) {
            mprotect(region, all, PROT_READ | PROT_WRITE);
            openings = 1;
            return;
        }
        struct sigaction ours = {};
        ours.sa_sigaction = touched;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigaction(SIGSEGV, &ours, &before);
    }
} start;

unsigned char* marks_of(const void* p) {
    return gtape_simulated_marks + ((uintptr_t)p - gtape_simulated_region);
}

void mark(const void* p, size_t bytes, unsigned char value) { memset(marks_of(p), value, bytes); }

// Bytes that are nan in every float type, and no likely integer.
void poison(void* p, size_t bytes) {
    Opened opened;
    uint16_t* words = (uint16_t*)p;
    for (size_t i = 0; i < (bytes < poisoned ? bytes : poisoned) / 2; ++i) words[i] = 0xfffd;
}

// A place of `bytes` on a device: the next gap that is large enough, else above all others. What
// was freed last is used again as late as can be, so that a use after free meets nobody else's data.
uintptr_t place(Device& owner, size_t bytes) {
    auto taken = [&](std::map<uintptr_t, size_t>::iterator gap) {
        uintptr_t at = gap->first;
        size_t rest = gap->second - bytes;
        owner.gaps.erase(gap);
        if (rest) owner.gaps[at + bytes] = rest;
        owner.next = at + bytes;
        return at;
    };
    if (owner.end - owner.top >= bytes && owner.gaps.size() < 64) {
        owner.top += bytes;
        return owner.top - bytes;
    }
    for (auto gap = owner.gaps.lower_bound(owner.next); gap != owner.gaps.end(); ++gap)
        if (gap->second >= bytes) return taken(gap);
    for (auto gap = owner.gaps.begin(); gap != owner.gaps.end(); ++gap)
        if (gap->second >= bytes) return taken(gap);
    if (owner.end - owner.top < bytes) return 0;
    owner.top += bytes;
    return owner.top - bytes;
}

void give_back(Device& owner, uintptr_t at, size_t bytes) {
    auto after = owner.gaps.lower_bound(at);
    if (after != owner.gaps.end() && after->first == at + bytes) {
        bytes += after->second;
        after = owner.gaps.erase(after);
    }
    if (after != owner.gaps.begin() && std::prev(after)->first + std::prev(after)->second == at) {
        std::prev(after)->second += bytes;
        return;
    }
    owner.gaps[at] = bytes;
}

int take_device(void** p, size_t bytes) {
    *p = nullptr;
    if (int status = faulted()) return failed(status);
    if (!bytes) return 0;
    std::lock_guard<std::recursive_mutex> held(guard);
    Device& owner = table[device];
    if (bytes > memory_of_device() || owner.used + rounded(bytes) > memory_of_device())
        return failed(cudaErrorMemoryAllocation);
    uintptr_t at = place(owner, rounded(bytes) + zone);
    if (!at) return failed(cudaErrorMemoryAllocation);
    if (openings) mprotect((void*)at, rounded(bytes) + zone, PROT_READ | PROT_WRITE);
    owner.used += rounded(bytes);
    if (owner.used > owner.peak) owner.peak = owner.used;
    allocations[at] = {bytes, device, Kind::device};
    *p = (void*)at;
    mark(*p, bytes, mark_allocated);
    poison(*p, bytes);
    return 0;
}

int take_host(void** p, size_t bytes, Kind kind) {
    *p = nullptr;
    if (!bytes) return 0;
    if (posix_memalign(p, unit, rounded(bytes))) return failed(cudaErrorMemoryAllocation);
    std::lock_guard<std::recursive_mutex> held(guard);
    allocations[(uintptr_t)*p] = {bytes, device, kind};
    return 0;
}

void forget_arrays(uintptr_t at, size_t bytes) {
    arrays.erase(arrays.lower_bound(at), arrays.lower_bound(at + bytes));
}

int give(void* p) {
    std::lock_guard<std::recursive_mutex> held(guard);
    if (!p) return 0;
    auto at = allocations.find((uintptr_t)p);
    if (at == allocations.end()) return failed(cudaErrorInvalidValue);
    Allocation freed = at->second;
    allocations.erase(at);
    if (freed.kind != Kind::device) {
        free(p);
        return 0;
    }
    Device& owner = table[freed.device];
    owner.used -= rounded(freed.bytes);
    forget_arrays((uintptr_t)p, freed.bytes);
    mark(p, rounded(freed.bytes), 0);
    give_back(owner, (uintptr_t)p, rounded(freed.bytes) + zone);
    return 0;
}

}  // namespace

Opened::Opened() {
    std::lock_guard<std::recursive_mutex> held(guard);
    if (!openings++) protect(PROT_READ | PROT_WRITE);
}

Opened::~Opened() {
    std::lock_guard<std::recursive_mutex> held(guard);
    if (!--openings) protect(PROT_NONE);
}

bool is_device(const void* p) {
    if (inside(p)) return true;
    std::lock_guard<std::recursive_mutex> held(guard);
    Allocation* found = find(p);
    if (found) return found->kind == Kind::managed;
    auto variable = below(variables, p);
    return variable != variables.end() && (uintptr_t)p - variable->first < variable->second;
}

int device_of(const void* p) {
    if (inside(p)) return (int)(((uintptr_t)p - gtape_simulated_region) / span);
    return is_device(p) ? device : -1;
}

bool allocated(const void* p, size_t bytes, std::string* why) {
    if (!bytes) return true;
    if (!inside(p)) {
        if (is_device(p)) return true;
        if (why) *why = "memory of the host";
        return false;
    }
    const unsigned char* at = marks_of(p);
    for (size_t i = 0; i < bytes; ++i)
        if (!(at[i] & mark_allocated)) {
            if (why) *why = description((const char*)p + i);
            return false;
        }
    return true;
}

void mark_written(void* p, size_t bytes) {
    if (inside(p)) mark(p, bytes, mark_allocated | mark_was_written);
}

size_t unwritten(const void* p, size_t bytes) {
    size_t count = 0;
    if (inside(p))
        for (size_t i = 0; i < bytes; ++i) count += !(marks_of(p)[i] & mark_was_written);
    return count;
}

void copy_marks(void* to, const void* from, size_t bytes) {
    if (!inside(to)) return;
    if (inside(from)) memmove(marks_of(to), marks_of(from), bytes);
    else mark_written(to, bytes);
}

void add_range(void* p, size_t bytes) {
    std::lock_guard<std::recursive_mutex> held(guard);
    variables[(uintptr_t)p] = bytes;
}

std::string description(const void* p) {
    std::lock_guard<std::recursive_mutex> held(guard);
    char text[512];
    auto array = below(arrays, p);
    auto block = below(allocations, p);
    if (block != allocations.end() && block->second.kind == Kind::device &&
        (array == arrays.end() || block->first > array->first)) {
        size_t offset = (uintptr_t)p - block->first, size = block->second.bytes;
        snprintf(text, sizeof text, offset < size ? "byte %zu of an allocation of %zu bytes"
                 : "%zu bytes behind the end of an allocation of %zu bytes",
                 offset < size ? offset : offset - size, size);
        return text;
    }
    if (array == arrays.end()) return "an address where nothing was allocated";
    const Array& found = array->second;
    size_t offset = (uintptr_t)p - array->first;
    int length = offset < found.bytes
        ? snprintf(text, sizeof text, "byte %zu of ", offset)
        : snprintf(text, sizeof text, "%zu bytes behind the end of ", offset - found.bytes);
    snprintf(text + length, sizeof text - length, "an array of %zu bytes made at %s%s", found.bytes,
             found.place.c_str(), found.freed ? " and freed since" : "");
    return text;
}

}  // namespace simulated

using namespace simulated;

extern "C" {

int cudaMalloc(void** p, size_t bytes) {
    if (int status = forbidden_while_capturing()) return status;
    return take_device(p, bytes);
}

int cudaMallocAsync(void** p, size_t bytes, CUstream) { return take_device(p, bytes); }
int cudaMallocFromPoolAsync(void** p, size_t bytes, void*, CUstream) {
    return take_device(p, bytes);
}
int cudaMallocManaged(void** p, size_t bytes, unsigned) {
    return take_host(p, bytes, Kind::managed);
}
int cudaHostAlloc(void** p, size_t bytes, unsigned) { return take_host(p, bytes, Kind::host); }

int cudaHostRegister(void* p, size_t bytes, unsigned) {
    std::lock_guard<std::recursive_mutex> held(guard);
    if (!p || !bytes || allocations.count((uintptr_t)p)) return failed(cudaErrorInvalidValue);
    allocations[(uintptr_t)p] = {bytes, device, Kind::host};
    return 0;
}
int cudaHostUnregister(void* p) {
    std::lock_guard<std::recursive_mutex> held(guard);
    return allocations.erase((uintptr_t)p) ? 0 : failed(cudaErrorInvalidValue);
}

int cudaFree(void* p) {
    if (p)
        if (int status = synchronize()) return status;  // as a GPU does
    return give(p);
}
int cudaFreeHost(void* p) { return cudaFree(p); }
int cudaFreeAsync(void* p, CUstream stream) {
    return submit_outside_graphs(stream, [=] { return give(p); });
}

int cudaMemGetInfo(size_t* free, size_t* total) {
    std::lock_guard<std::recursive_mutex> held(guard);
    *total = memory_of_device();
    *free = *total - table[device].used;
    return 0;
}

int cudaPointerGetAttributes(cudaPointerAttributes* to, const void* p) {
    std::lock_guard<std::recursive_mutex> held(guard);
    Allocation* found = find(p);
    if (!found && is_device(p)) *to = {2, device_of(p), (void*)p, nullptr};
    else if (!found) *to = {0, -2, nullptr, (void*)p};
    else *to = {(int)found->kind, found->device, found->kind == Kind::host ? nullptr : (void*)p,
                found->kind == Kind::device ? nullptr : (void*)p};
    return 0;
}

// An array that a pool gave out of an allocation, from now on in the order of `stream`.
int gtape_simulated_array(void* p, size_t bytes, size_t whole, const char* place, CUstream stream) {
    std::string at = place;
    return submit_outside_graphs(stream, [=] {
        std::lock_guard<std::recursive_mutex> held(guard);
        if (!find(p)) return 0;
        forget_arrays((uintptr_t)p, whole);
        arrays[(uintptr_t)p] = {bytes, at, false};
        mark(p, whole, 0);
        mark(p, bytes, mark_allocated);
        return 0;
    });
}

int gtape_simulated_array_freed(void* p, size_t whole, CUstream stream) {
    return submit_outside_graphs(stream, [=] {
        std::lock_guard<std::recursive_mutex> held(guard);
        auto array = arrays.find((uintptr_t)p);
        if (array == arrays.end() || !find(p)) return 0;
        array->second.freed = true;
        mark(p, whole, 0);
        return 0;
    });
}

// A piece of an allocation as it was given to CuPy's pool: whole, and nobody's.
int gtape_simulated_untracked(void* p, size_t bytes) {
    std::lock_guard<std::recursive_mutex> held(guard);
    if (!find(p)) return 0;
    forget_arrays((uintptr_t)p, bytes);
    mark(p, bytes, mark_allocated);
    return 0;
}

// Both for the libraries that Python stands in for.
int gtape_simulated_allocated(const void* p, size_t bytes) { return allocated(p, bytes); }
void gtape_simulated_written(void* p, size_t bytes) { mark_written(p, bytes); }
void gtape_simulated_describe(const void* p, char* text, size_t size) {
    snprintf(text, size, "%s", description(p).c_str());
}

// Memory pools of the driver: one, which keeps nothing.
static int pool;
int cudaDeviceGetDefaultMemPool(void** p, int) { *p = &pool; return 0; }
int cudaDeviceGetMemPool(void** p, int) { *p = &pool; return 0; }
int cudaDeviceSetMemPool(int, void*) { return 0; }
int cudaMemPoolCreate(void** p, cudaMemPoolProps*) { *p = &pool; return 0; }
int cudaMemPoolDestroy(void*) { return 0; }
int cudaMemPoolTrimTo(void*, size_t) { return 0; }
int cudaMemPoolSetAttribute(void*, int, void*) { return 0; }
int cudaMemPoolGetAttribute(void*, int attribute, void* value) {
    std::lock_guard<std::recursive_mutex> held(guard);
    // cudaMemPoolAttrReservedMemCurrent 5, ReservedMemHigh 6, UsedMemCurrent 7, UsedMemHigh 8
    bool high = attribute == 6 || attribute == 8;
    *(uint64_t*)value = attribute < 5 ? 0 : high ? table[device].peak : table[device].used;
    return 0;
}

}  // extern "C"
