"""The steps of a run, the engine seam, Dask and Parquet; the command line and the Python API.

The public names are those of `bicliques`.
"""

#: Stored with every run.
__version__ = "0.1.0"
