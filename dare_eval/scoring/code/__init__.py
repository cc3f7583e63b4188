"""Scoring of generated programs: extraction from a reply, a sandbox for hostile code, tests kept out of its reach.

``score_code`` is the scorer of kind ``code``; ``run_code`` runs a program without extraction; ``SandboxPool`` is the
sandbox for callers that want one of their own. ``docs/sandbox.md`` has the rules, the threats and what each costs.
"""

from dare_eval.scoring.code.pool import SandboxPool
from dare_eval.scoring.code.programs import Limits, Program, Verdict
from dare_eval.scoring.code.scorer import default_sandbox, run_code, score_code

__all__ = ["Limits", "Program", "SandboxPool", "Verdict", "default_sandbox", "run_code", "score_code"]
