"""Clients and plugins of inference engines, for evaluation and rollout alike: SGLang, LMDeploy, OpenAI-style servers.

Nothing here imports OpenCompass, and an engine is imported inside functions only: a client needs httpx, a plugin
runs inside the engine's own process. What an engine cannot honour of a ``DecodeSpec`` is an error. docs/engines.md
says what exists, what was tested and how, and what has not run on a GPU.
"""
