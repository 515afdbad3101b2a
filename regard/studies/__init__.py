"""Studies of runs and data: compare, ladder, reproduce, anomalies, compression, reduction."""
