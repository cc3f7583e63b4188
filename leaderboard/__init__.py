"""The Streamlit board that shows quality, cost and significance side by side."""
