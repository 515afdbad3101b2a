"""What every room may use; imports no room."""
