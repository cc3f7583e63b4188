"""OpenCompass model wrappers of the diffusion families, of engines and of recorded answers."""
