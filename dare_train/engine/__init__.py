"""The one training loop and its parts; algorithms plug in, none of them has a loop of its own."""
