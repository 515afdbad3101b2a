"""Training by several processes: the only package that communicates between processes."""
