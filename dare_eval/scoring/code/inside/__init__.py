"""The half of the sandbox that runs in its own interpreter: standard library only, no import of ``dare_eval``.

The host starts ``zygote`` with this folder's parent on the path and never imports these modules for their effects.
Three roles, from trusted to untrusted: ``zygote`` (watches, kills, reaps; runs no foreign code), ``judge`` (runs the
tests and compares), ``cell`` (runs the program). ``docs/sandbox.md`` says why they are three processes.
"""
