"""One file per model family; each states only where its family differs."""
