"""The paper: its tables as data, its theory as functions, a result compared with a published row."""

from sisod.paper.against import AgainstPaper, against_paper
from sisod.paper.published import (
    GroupClaim,
    Misprint,
    PublishedRow,
    claimed_gains,
    datasets,
    facts,
    find_row,
    gains,
    group_claims,
    misprints,
    networks,
    row,
    table,
)

__all__ = [
    "AgainstPaper",
    "GroupClaim",
    "Misprint",
    "PublishedRow",
    "against_paper",
    "claimed_gains",
    "datasets",
    "facts",
    "find_row",
    "gains",
    "group_claims",
    "misprints",
    "networks",
    "row",
    "table",
]
