"""Training methods: each names its parts (noise, scorer, loss) and has no loop of its own."""
