"""Rows of training data: tokenizer of the planning puzzles, sources, rendering to tokens, batches."""
