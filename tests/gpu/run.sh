#!/usr/bin/env bash
# The engine tests on a machine with a CUDA device; a skipped test is a failure. Prints a short table last.
# PYTHON: an interpreter with CuPy, Numba, PyArrow, cuDF, dask-cuda, pytest and Hypothesis. BICLIQUES_DATA: folder of the known
# graphs. JOBS: so many processes side by side, with pytest-xdist.
set -uo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
failed=0
lines=()

step() { # name, command...
  local name=$1 start=$SECONDS
  shift
  local said
  if said=$("$@" 2>&1); then outcome=passed; else outcome=FAILED failed=1; printf '%s\n' "$said" | tail -n 60; fi
  lines+=("$(printf '%-28s %-7s %4d s  %s' "$name" "$outcome" $((SECONDS - start)) "$(printf '%s\n' "$said" | tail -n 1 | cut -c1-90)")")
}

tests() { "$python" -m pytest tests/gpu --require-gpu --every-case -q --maxfail=5 --timeout=90 -p no:benchmark ${JOBS:+-n $JOBS --dist loadscope} "$@"; }
step "engines, pipeline, cuDF" tests
# output buffers have holes, which the host copies and skips: initcheck looks at kernels only
for tool in memcheck racecheck "initcheck --check-api-memory-access no" synccheck; do
  step "compute-sanitizer $tool" compute-sanitizer --tool $tool --error-exitcode 9 "$python" -m tests.gpu.tiny
done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
printf '%s\n' "${lines[@]}"
exit $failed
