"""The verbs of ``dare-train``, one file each."""
