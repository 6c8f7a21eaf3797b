"""Formats of image files: headers that are read before decoding, and NumPy's files."""
