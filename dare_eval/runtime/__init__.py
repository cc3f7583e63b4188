"""OpenCompass tasks, partitioners, runner and summarizer: fingerprints, resume, one interpreter, honest exit codes."""
