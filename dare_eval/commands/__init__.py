"""One module per command of ``dare-eval``; heavy imports stay inside the functions."""
