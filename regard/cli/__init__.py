"""The command line: one short file per verb; torch is imported inside a verb."""
