# gtape on NumPy. From the root of a checkout:
#   docker build -f docker/cpu.Dockerfile -t gtape .
#   docker run --rm gtape            the demo
#   docker run --rm gtape test       the tests
FROM python:3.12-slim

# The tests run the CUDA kernels on the CPU, which takes a C++ compiler.
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home gtape && mkdir -p /home/gtape/cache && chown gtape /home/gtape/cache
USER gtape
WORKDIR /home/gtape/gtape
COPY --chown=gtape . .
RUN python3 -m venv .venv && .venv/bin/python -m pip install -q -e ".[test]"

# Compiled kernels are kept here from one run to the next.
ENV GTAPE_CACHE_DIR=/home/gtape/cache
VOLUME /home/gtape/cache

ENTRYPOINT [".venv/bin/python", "-m", "gtape"]
CMD ["demo"]
