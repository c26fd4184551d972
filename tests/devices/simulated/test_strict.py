"""The simulated GPU is as strict as a GPU, and says what was wrong and where."""

from __future__ import annotations

import pytest

from tests.devices.simulated.running import simulate

#: A kernel that reads a[i + read] and writes a[i + write].
_KERNEL = '''
kernel = cupy.RawKernel(r"""
extern "C" __global__ void move(const float* from, float* to, long long read, long long write) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = from[i + read];
    to[i + write] = value;
}
""", "move")
def move(a, b, read=0, write=0):
    kernel((2,), (5,), (a, b, read, write))
    cupy.cuda.Device().synchronize()
'''


def _fault(lines: str, **settings: str) -> str:
    """What the error says that a program of the kernel ends with."""
    ended = simulate(_KERNEL + lines, **settings)
    assert ended.status == 1, ended
    return ended.errors.strip().splitlines()[-1]


def test_a_sound_kernel_runs() -> None:
    ended = simulate(_KERNEL + "a = cupy.arange(10, dtype='f')\nb = cupy.empty_like(a)\n"
                               "move(a, b)\nprint(b.sum())")
    assert (ended.status, ended.printed) == (0, "45.0\n"), ended.errors


@pytest.mark.parametrize("call, said", [
    ("move(a, b, read=1)", "a load of 4 bytes"),
    ("move(a, b, write=1)", "a store of 4 bytes"),
])
def test_an_access_behind_an_array_is_found_within_the_pool(call: str, said: str) -> None:
    said_all = _fault(f"a = cupy.zeros(10, 'f')\nb = cupy.zeros(10, 'f')\n{call}")
    for part in ("CUDA_ERROR_ILLEGAL_ADDRESS", "the kernel move", said,
                 "0 bytes behind the end of an array of 40 bytes made at <string>",
                 "thread 4 of block (1, 0, 0)"):
        assert part in said_all, said_all


def test_the_line_of_the_kernel_is_told() -> None:
    said = _fault("a = cupy.zeros(10, 'f')\nmove(a, a, write=100)")
    assert ":5 (thread" in said, said


def test_memory_that_was_freed_may_not_be_read() -> None:
    said = _fault("a = cupy.zeros(10, 'f')\nb = cupy.zeros(10, 'f')\nplace = a.data.ptr\n"
                  "del a\nkernel((2,), (5,), (cupy.uintp(place), b, 0, 0))")
    assert "freed since" in said, said


def test_what_nothing_has_written_may_not_be_read() -> None:
    lines = "a = cupy.empty(10, 'f')\nb = cupy.zeros(10, 'f')\nmove(a, b)"
    assert "which nothing has written" in _fault(lines)
    assert simulate(_KERNEL + lines, check="memory,host").status == 0


def test_an_address_that_is_not_aligned_is_found() -> None:
    said = _fault("a = cupy.zeros(100, 'b')\nb = cupy.zeros(10, 'f')\nmove(a[2:], b)")
    assert "CUDA_ERROR_MISALIGNED_ADDRESS" in said and "aligned to 4 bytes" in said


def test_memory_of_the_host_is_no_devices() -> None:
    said = _fault("import numpy\na = numpy.zeros(10, 'f')\nb = cupy.zeros(10, 'f')\n"
                  "kernel((2,), (5,), (cupy.uintp(a.ctypes.data), b, 0, 0))")
    assert "memory of the host" in said, said


def test_the_host_may_not_touch_device_memory() -> None:
    ended = simulate("import ctypes\na = cupy.zeros(10, 'f')\n"
                     "print(ctypes.c_float.from_address(a.data.ptr + 8).value)")
    assert ended.status < 0 and not ended.printed
    assert "touched device memory, byte 8 of an array of 40 bytes made at <string>" in ended.errors
    ended = simulate("import ctypes\na = cupy.zeros(10, 'f')\n"
                     "print(ctypes.c_float.from_address(a.data.ptr + 8).value)", check="memory")
    assert (ended.status, ended.printed) == (0, "0.0\n")


def test_a_fault_stays() -> None:
    ended = simulate(_KERNEL + """
a = cupy.zeros(10, 'f')
for attempt in range(3):
    try:
        move(a, a, write=10**9 if attempt == 0 else 0)
    except Exception as error:
        print(type(error).__name__, "ILLEGAL" in str(error).upper())
""")
    assert ended.printed.splitlines() == ["CUDADriverError True"] * 3, ended


def test_an_assertion_and_a_division_are_launch_failures() -> None:
    for text, code in (("assert(n == 7);", "CUDA_ERROR_ASSERT"),
                       ("a[0] = 1 / (n - n);", "CUDA_ERROR_LAUNCH_FAILED")):
        ended = simulate(f"""
k = cupy.RawKernel('extern "C" __global__ void f(int* a, int n) {{ {text} }}', "f")
k((1,), (1,), (cupy.zeros(1, "i"), cupy.int32(3)))
""")
        assert ended.status == 1 and code in ended.errors, ended


def test_a_kernel_without_end_is_given_up() -> None:
    ended = simulate("""
k = cupy.RawKernel('extern "C" __global__ void f(volatile int* a) { while (a[0] == 0); }', "f")
k((1,), (1,), (cupy.zeros(1, "i"),))
""", seconds="1")
    assert ended.status == 1 and "did not end in the time given" in ended.errors, ended


def test_a_race_shows_in_another_schedule() -> None:
    program = """
k = cupy.RawKernel(r'''extern "C" __global__ void f(float* y) {
    __shared__ float x[64];
    x[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = x[(threadIdx.x + 1) % 64];
}''', "f")
y = cupy.zeros(64, "f")
k((1,), (64,), (y,))
print(cupy.asnumpy(y).tolist() == [(i + 1) % 64 for i in range(64)])
"""
    printed = {simulate(program, schedule=order).printed for order in ("ascending", "descending")}
    assert "False\n" in printed


# -------------------------------------------------------------------------- streams


_LATE = """
import numpy
stream = cupy.cuda.Stream(non_blocking=True)
a = cupy.zeros(4, "f")
cupy.cuda.Device().synchronize()
with stream:
    a += 1
{wait}
print(cupy.asnumpy(a).tolist())
"""


def test_a_missing_synchronisation_shows_where_operations_are_delayed() -> None:
    missing, present = _LATE.format(wait=""), _LATE.format(wait="stream.synchronize()")
    ones, zeros = f"{[1.0] * 4}\n", f"{[0.0] * 4}\n"
    assert simulate(missing).printed == ones
    assert simulate(missing, ASYNC="1").printed == zeros
    assert simulate(present, ASYNC="1").printed == ones


def test_an_event_orders_streams() -> None:
    ended = simulate("""
one, two = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
a = cupy.zeros(4, "f")
cupy.cuda.Device().synchronize()
with one:
    a += 1
    done = one.record()
with two:
    two.wait_event(done)
    a *= 5
two.synchronize()
with two:
    print(a.get().tolist())
""", ASYNC="1")
    assert ended.printed == f"{[5.0] * 4}\n", ended.errors


@pytest.mark.parametrize("line, said", [
    ("stream.synchronize()", "cudaErrorStreamCaptureUnsupported"),
    ("cupy.cuda.runtime.memcpy(a.data.ptr, a.data.ptr, 4, 3)", "cudaErrorStreamCaptureImplicit"),
])
def test_what_no_capture_allows_is_refused(line: str, said: str) -> None:
    ended = simulate(f"""
stream = cupy.cuda.Stream()
a = cupy.zeros(4, "f")
with stream:
    a += 1
    stream.synchronize()
    stream.begin_capture()
    try:
        {line}
    except Exception as error:
        print(error)
    try:
        a += 1
        stream.end_capture()
    except Exception as error:
        print(error)
""")
    first, second = ended.printed.splitlines()
    assert said in first and "CAPTURE_INVALIDATED" in second, ended


def test_a_graph_replays_what_was_captured() -> None:
    ended = simulate("""
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    a = cupy.zeros(4, "f")
    a += 1
    stream.begin_capture()
    a += 1
    graph = stream.end_capture()
    before = a.get().tolist()
    for _ in range(3):
        graph.launch()
    print(before, a.get().tolist())
""")
    assert ended.printed == f"{[1.0] * 4} {[4.0] * 4}\n", ended.errors


# -------------------------------------------------------------------------- devices, memory


def test_there_may_be_several_devices_with_little_memory() -> None:
    ended = simulate("""
print(cupy.cuda.runtime.getDeviceCount(), cupy.cuda.Device(1).compute_capability)
with cupy.cuda.Device(1):
    a = cupy.arange(4)
print(a.device.id, (cupy.asarray(a.get()) + 1).sum())
try:
    cupy.zeros(100 << 20, "b")
except cupy.cuda.memory.OutOfMemoryError as error:
    print("out of memory")
""", devices="2", memory_mb="64", capability="89")
    assert ended.printed == "2 89\n1 10\nout of memory\n", ended.errors


def test_it_is_not_taken_for_a_card() -> None:
    ended = simulate("""
import os
name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
print("simulated" in name, cupy.cuda.nvrtc.getVersion())
print("simulator" in os.environ["CUPY_CACHE_DIR"])
""")
    assert ended.printed == "True (13, 99)\nTrue\n", ended


def test_what_is_not_simulated_says_so_by_name() -> None:
    ended = simulate("cupy.cuda.runtime.ipcGetMemHandle(cupy.zeros(4).data.ptr)")
    assert ended.status == 1 and "cudaIpcGetMemHandle is not simulated" in ended.errors
