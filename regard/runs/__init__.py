"""Run folders: recipes, training, loading, prediction and reports."""
