"""`python -m sisod` is the command `sisod`."""

from sisod.cli.evaluate import app

app()
