"""Evaluate diffusion language models through OpenCompass, and keep what the score cost.

Importing this package imports nothing heavy; torch and OpenCompass load inside the parts that need them.
"""

__version__ = "0.1.0"
