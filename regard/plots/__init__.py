"""Arrays and labels in, SVG, PNG, HTML and terminal text out; no models."""
