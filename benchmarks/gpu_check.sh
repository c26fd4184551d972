#!/usr/bin/env bash
# Proof and speed of gtape on one NVIDIA GPU, in under 9 minutes:
#
#     bash benchmarks/gpu_check.sh [--install] [--quick]
#
# It runs the tests marked gpu, the checks of the kernels, and the benchmark `benchmarks.gpu`, goes
# on when one of them fails, and ends with status 1 then; with 2 where there is no GPU. The tables go
# to benchmarks/results/gpu.md and gpu.json.
#
# --install  first install gtape, what the tests need, and CuPy for CUDA 13, by pip
# --quick    the benchmark without what compiles for long
#
# PYTHON        the interpreter (default: python3)
# OUT           where gpu.md and gpu.json go
# SECONDS_IN_ALL  what all of it may take (default: 530)
# GTAPE_COMMIT  the commit, where the checkout is a copy without its history
set -uo pipefail

python=${PYTHON:-python3}
in_all=${SECONDS_IN_ALL:-530}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${OUT:-$root/benchmarks/results}
install=no quick=no
for argument in "$@"; do
    case $argument in
        --install) install=yes ;;
        --quick) quick=yes ;;
        *) echo "gpu_check.sh knows --install and --quick; got $argument" >&2; exit 2 ;;
    esac
done
cd "$root" || exit 2
SECONDS=0
failed=()
scratch=$(mktemp -d)
warming=

clean_up() {
    [[ -n $warming ]] && kill "$warming" 2>/dev/null
    rm -rf "$scratch"
}
trap clean_up EXIT

left() { echo $((in_all - SECONDS)); }
least() { echo $(($1 < $2 ? $1 : $2)); }
say() { printf '\n== %s  [%d s]\n' "$*" "$SECONDS"; }

# `step NAME SECONDS COMMAND...` runs it for at most SECONDS, and remembers a failure.
step() {
    local name=$1 cap=$2
    shift 2
    say "$name, at most $cap s"
    timeout --kill-after=10 "$cap" "$@"
    local status=$?
    if ((status)); then
        ((status == 124)) && echo "$name: not done within $cap s"
        failed+=("$name (status $status)")
    fi
}

if [[ $install == yes ]]; then
    "$python" -m pip install --quiet -e ".[cuda13,test]" || exit 2
fi
export GTAPE_COMMIT=${GTAPE_COMMIT:-$(git describe --always --dirty=+changes 2>/dev/null || true)}
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
export GTAPE_CACHE_DIR=${GTAPE_CACHE_DIR:-$scratch/gtape}

say "Versions"
GTAPE_DEVICE=gpu "$python" - <<'PYTHON' || exit 2
import sys

try:
    import gtape
    from gtape.devices.probe import probe, why_not
except ImportError as error:
    sys.exit(f"gpu_check.sh: gtape cannot be imported: {error}")
if not any(device.index == 0 for device in probe().devices):
    sys.exit(f"gpu_check.sh needs an NVIDIA GPU that gtape can use, and there is none. {why_not()}")
from benchmarks.gpu.peers.gtape_peer import cupy_versions
from benchmarks.gpu.publish import driver

print(f"python {sys.version.split()[0]}, gtape {gtape.__version__}")
for name, version in {**cupy_versions(), "driver": driver()}.items():
    print(f"{name}: {version}")
PYTHON
echo "commit: ${GTAPE_COMMIT:-none}"

warm_log=$scratch/warm.log
caches=$scratch/caches
if [[ $quick == no ]]; then
    "$python" -m benchmarks.gpu --warm only --warm-seconds 230 --caches "$caches" \
        >"$warm_log" 2>&1 &
    warming=$!
fi

if "$python" -c 'import hypothesis, pytest, pytest_timeout' 2>/dev/null; then
    # Most of their time goes into compiling kernels, gtape's and CuPy's.
    workers=()
    "$python" -c 'import xdist' 2>/dev/null && workers=(-n "$(least 8 "$(nproc)")")
    GTAPE_REQUIRE_GPU=1 step "Tests on the GPU" 200 \
        "$python" -m pytest tests -m gpu -q -p no:cacheprovider --tb=short "${workers[@]}"
else
    echo "The tests need pytest, pytest-timeout and hypothesis: pip install them, or use --install"
    failed+=("Tests on the GPU (not run)")
fi
step "Checks of the kernels on the GPU" 90 "$python" -m gtape kernels --run --on gpu

arguments=(--out "$out" --caches "$caches")
if [[ $quick == yes ]]; then
    arguments+=(--quick)
else
    say "Waiting for the warm-ups"
    wait "$warming"
    warming=
    cat "$warm_log"
    arguments+=(--warm done)
fi
budget=$(least 300 $(($(left) - 15)))
if ((budget > 30)); then
    step "Benchmark" $((budget + 10)) \
        "$python" -m benchmarks.gpu "${arguments[@]}" --budget "$budget"
else
    echo "No time is left for the benchmark"
    failed+=("Benchmark (not run)")
fi

say "Done"
if ((${#failed[@]})); then
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "Everything passed."
