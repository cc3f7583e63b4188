"""OpenCompass inferencers for diffusion models: per-item records while decoding, resume after any crash."""
