"""Questions about runs and data: compare, climb the ladder, reproduce."""
