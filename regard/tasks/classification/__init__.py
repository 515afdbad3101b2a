"""Classification: text, an image, a video or audio in, a label out."""
