"""Shared by several test files: oracles, synthetic inputs, runs of commands, marks, checks."""
