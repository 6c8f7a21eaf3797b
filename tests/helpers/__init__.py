"""What several test files share: oracles, synthetic inputs, runs, marks."""
