"""Reinforcement learning: rollouts, rewards, the parts of algorithms, and the loop that joins them."""
