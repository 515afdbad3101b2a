"""Images: files, decoding, cache, field and augmentation."""
