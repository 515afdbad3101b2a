"""Server: predictions of several runs over HTTP, for programs and for a web page."""
