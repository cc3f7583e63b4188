"""The board: what the store knows, on pages that people read. ``streamlit run leaderboard/app.py``."""
