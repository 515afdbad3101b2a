"""Built-in data sets: their catalog and one module per family."""
