"""Start / step / reorder → Hypothesis."""
