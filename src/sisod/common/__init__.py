"""What every subpackage builds on: exceptions, output, tables of text, settings, processes."""
