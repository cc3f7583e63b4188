"""An outside package: a model family, a decoding rule, a scorer and a benchmark."""
