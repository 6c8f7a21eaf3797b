"""Folders -> results: scored in parallel, resumable, saved and loaded."""
