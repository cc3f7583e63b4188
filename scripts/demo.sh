#!/usr/bin/env bash
# The main job on the shipped models: evaluate, train further, evaluate again, compare on the same items.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/venv.sh
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" TOKENIZERS_PARALLELISM=false

echo "== 1/2  Evaluate the shipped models on Sudoku 4x4 and Countdown (about half a minute)"
dare-eval run configs/eval/tiny_planning.py

echo "== 2/2  Train the Sudoku model further, evaluate it on the same items and compare (about two minutes)"
dare-train sft --config configs/train/sft_tiny_sudoku_more.yaml --then-eval

echo "== To see both in a browser: streamlit run leaderboard/app.py"
