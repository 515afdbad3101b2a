"""Routes of the server, with their requests and replies."""
