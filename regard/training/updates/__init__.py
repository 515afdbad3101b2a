"""Updates of weights: Muon, skipped updates, moving averages."""
