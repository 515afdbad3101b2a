"""Files → Example → Batch."""
