"""OpenCompass evaluators over ``dare_eval.scoring``, and which benchmark is scored by which kind."""
