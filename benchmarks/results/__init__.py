"""The pages of `docs/results`, one file for each experiment or family of experiments."""
