"""Planning puzzles that need no download: seeded generators by enumeration, solvers, baselines and prompts."""
