"""Data of the board's pages: pure functions over the store and the run folders, without Streamlit."""
