#!/usr/bin/env bash
# The main job on the shipped models: evaluate, practise with a verifier, evaluate again, compare on the same items.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/venv.sh
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" TOKENIZERS_PARALLELISM=false

echo "== 1/3  Evaluate the shipped models on Sudoku 4x4 and Countdown (about half a minute)"
dare-eval run configs/eval/tiny_planning.py

echo "== 2/3  Reinforcement learning with CJ-GRPO on Countdown, evaluated and compared on the same items (two to three minutes)"
dare-train rl --algo cj_grpo --then-eval

echo "== 3/3  The same with d1, as the earlier system varies it (one to two minutes)"
dare-train rl --algo d1_dare --then-eval --set train.max_steps=400

echo "== To see all of it in a browser: streamlit run leaderboard/app.py"
