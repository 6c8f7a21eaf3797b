"""Grid -> tables: the paper's whole grid, cell by cell, and its tables with ours beside.

cells.py     which cells there are, and the recipe of each
sets.py      the data sets below a root; made ones for a trial of the whole path
costs.py     GPU hours and disk of a cell, before it is run
run.py       runs a cell, or what is left of it
tables.py    results -> the paper's tables with ours beside

A folder of it holds

reproduction.json                       scale and data
cells/CELL/run                          the run folder of `sisod train`
cells/CELL/maps/DATASET                 maps of `sisod predict`
cells/ldf-labels/labels                 what LDF's first stage sees, for both losses the same
results/PROTOCOL/DATASET/CELL           results of `sisod evaluate`, protocols default and official
cells/time/time.json                    what `sisod bench` measured
tables/                                 the tables, as Markdown, JSON and Parquet
"""
