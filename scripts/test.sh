#!/usr/bin/env bash
# All checks: style, types, tests. Arguments go to pytest (bash scripts/test.sh -k sudoku).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/venv.sh
ruff check .
mypy
# One thread per worker: two workers on two cores, and reductions that do not depend on the core count.
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
python -m pytest -n "${DARE_TEST_WORKERS:-2}" --dist loadgroup --durations=25 "$@"
