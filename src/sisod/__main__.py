"""`python -m sisod` is the command `sisod`."""

from sisod.cli import app

app()
