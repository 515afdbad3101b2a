"""Reproductions of experiments from papers and lectures."""
