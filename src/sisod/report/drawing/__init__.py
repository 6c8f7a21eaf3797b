"""How figures are drawn: measured text, legends, and panels of scores by groups."""
