"""Saved parts of a run folder: settings, the data that they name, and the chosen precision."""
