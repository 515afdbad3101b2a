"""Query x keys → weights → context; plain tensors only."""
