"""Videos: files, frames and field."""
