"""Grid -> tables: the paper's whole grid, cell by cell, and its tables with our numbers beside them.

cells.py     the cells, the recipe of each, and what it costs: GPU hours, disk space
sets.py      the data sets below a root; synthetic ones to try the pipeline
run.py       runs a cell, or the unfinished part of it
tables.py    results -> the paper's tables with our numbers beside them

The folder of a reproduction holds

reproduction.json                       scale, data and precision
cells/CELL/run                          the run folder of `sisod train`
cells/CELL/maps/DATASET                 maps of `sisod predict`
cells/ldf-labels/labels                 the labels of LDF's first stage, the same for both losses
results/PROTOCOL/DATASET/METHOD         results of `sisod evaluate`, protocols default and official,
                                        named as in the paper: EDN, EDN+SI; EDN+alpha0, EDN+alpha1
tables/                                 the tables, as Markdown and Parquet
"""
