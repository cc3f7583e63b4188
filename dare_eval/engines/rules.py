"""What of a DecodeSpec an engine fixes when it starts, as one text that client and engine compare.

Temperature, filters, lengths and stop tokens go with each request and are left out; no torch, no engine.
"""

from __future__ import annotations

import json

from dare_eval.errors import SetupError
from dare_eval.spec import DecodeSpec

FIELDS = ("family", "block_length", "block_steps", "policy", "threshold", "factor", "min_transfer", "eos_rule", "dtype")


def rules_text(spec: DecodeSpec) -> str:
    """Return the rules as JSON; equal texts decode alike."""
    return json.dumps({name: getattr(spec, name) for name in FIELDS}, sort_keys=True)


def check_rules(text: object, spec: DecodeSpec) -> None:
    """Raise ``SetupError`` when an engine that sends ``text`` decodes by other rules than ``spec`` has."""
    wanted = rules_text(spec)
    if text == wanted:
        return
    try:
        held = dict(json.loads(str(text)))
    except (ValueError, TypeError):
        raise SetupError(
            "the engine does not say by which rules it decodes",
            seen=str(text)[:200],
            remedy="install the version of this package that the client has into the engine's environment",
        ) from None
    asked = json.loads(wanted)
    other = [name for name in sorted({*held, *asked}) if held.get(name) != asked.get(name)]
    raise SetupError(
        "the engine decodes by other rules than are asked for",
        seen=", ".join(f"{name} = {held.get(name)}" for name in other),
        allowed=", ".join(f"{name} = {asked.get(name)}" for name in other),
        remedy="start it with the configuration of these settings (dare_eval.engines.sglang_settings.write_config), "
        "or ask for its own",
    )
