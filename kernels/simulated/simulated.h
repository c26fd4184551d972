// What the parts of the simulated GPU know of each other: settings, errors, memory, streams.
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <string>

namespace simulated {

// ---------------------------------------------------------------- settings.cpp

long setting(const char* name, long otherwise);      // GTAPE_SIMULATED_<name>, a number
bool checks(const char* what);                       // whether GTAPE_SIMULATED_CHECK has the word
int devices();
size_t memory_of_device();
int compute_capability();                            // 90 for 9.0

// ---------------------------------------------------------------- errors.cpp

// Remembers a status for cudaGetLastError and returns it.
int failed(int status);
// A fault of a kernel: from now on every call answers `status`, as after a fault on a GPU.
void fault(int status, const std::string& text);
// The status of the fault; 0 where there was none.
int faulted();
void forget_fault();
const char* error_name(int status);

// ---------------------------------------------------------------- memory.cpp

extern thread_local int device;

bool is_device(const void* p);
int device_of(const void* p);                        // -1: memory of the host
// Whether a whole range is device memory (or managed) in use; what is wrong with it in `why`.
bool allocated(const void* p, size_t bytes, std::string* why = nullptr);
void mark_written(void* p, size_t bytes);
// The number of bytes of a range that nothing has written.
size_t unwritten(const void* p, size_t bytes);
void copy_marks(void* to, const void* from, size_t bytes);
// "byte 8 of an array of 40 bytes, made at program.py:3"
std::string description(const void* p);
void add_range(void* p, size_t bytes);               // a variable of a module, as device memory

// While one lives, this process may touch device memory.
struct Opened {
    Opened();
    ~Opened();
    Opened(const Opened&) = delete;
    void operator=(const Opened&) = delete;
};

// ---------------------------------------------------------------- streams.cpp

using Operation = std::function<int()>;

// Runs an operation, keeps it for later, or records it where the stream is captured.
int submit(CUstream stream, Operation operation);
// As submit, at once where the stream is captured: what is no part of a graph.
int submit_outside_graphs(CUstream stream, Operation operation);
int synchronize();                                   // all streams of all devices
// The status of a call that no capture allows; 0 where none goes on.
int forbidden_while_capturing();
bool is_captured(CUstream stream);

}  // namespace simulated
