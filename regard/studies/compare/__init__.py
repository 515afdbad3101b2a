"""Compare runs on one test set."""
