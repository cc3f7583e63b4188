"""Transfer policies: one small file each, registered by name in ``dare_eval.spec`` or by entry point."""
