"""Train diffusion language models and hand every checkpoint back to the evaluation that scored its parent.

Importing this package imports nothing heavy.
"""

__version__ = "0.1.0"
