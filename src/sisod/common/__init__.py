"""What every room builds on: errors, output, tables of text, settings, processes."""
