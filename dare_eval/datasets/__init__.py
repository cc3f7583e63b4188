"""OpenCompass data sets that upstream lacks: Sudoku 4x4 and Countdown, generated with a seed or read from files."""
