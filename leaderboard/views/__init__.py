"""The board's pages, one function ``page`` each; they draw, ``leaderboard.data`` computes.

The folder is not called ``pages``: Streamlit would run its files as pages of their own.
"""
