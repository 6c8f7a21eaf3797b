"""Architectures: the five networks of the paper and a small one of our own."""
