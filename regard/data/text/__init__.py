"""Text: files, tokenizers, fields, masking and corruption."""
