"""What a run leaves behind: item records, manifests, statistics, comparisons, the fairness ledger and the store.

Nothing here imports torch or OpenCompass, and this file imports nothing at all, so a command line that only
lists runs starts at once.
"""
