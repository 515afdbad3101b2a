"""Commands that compare and analyse runs."""
