# gtape on NVIDIA GPUs. The machine needs NVIDIA's driver and container toolkit; CUDA itself comes
# with the wheels. From the root of a checkout:
#   docker build -f docker/cuda.Dockerfile -t gtape-cuda .
#   docker run --rm --gpus all gtape-cuda            the demo
#   docker run --rm --gpus all gtape-cuda test       the tests, on the GPU too
FROM python:3.12-slim

# The tests run the CUDA kernels on the CPU too, which takes a C++ compiler.
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home gtape && mkdir -p /home/gtape/cache && chown gtape /home/gtape/cache
USER gtape
WORKDIR /home/gtape/gtape
COPY --chown=gtape . .
RUN python3 -m venv .venv && .venv/bin/python -m pip install -q -e ".[test,cuda13]"

# Compiled kernels are kept here from one run to the next: gtape's and CuPy's.
ENV GTAPE_CACHE_DIR=/home/gtape/cache CUPY_CACHE_DIR=/home/gtape/cache/cupy
VOLUME /home/gtape/cache

# A test that needs a GPU fails without one, instead of being skipped.
ENV GTAPE_REQUIRE_GPU=1 NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

ENTRYPOINT [".venv/bin/python", "-m", "gtape"]
CMD ["demo"]
