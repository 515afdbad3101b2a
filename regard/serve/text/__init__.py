"""Texts of requests: languages, sentences and HTML."""
