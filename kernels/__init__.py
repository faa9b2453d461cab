"""The algorithms: arrays in, arrays out. No Dask, no Prefect, no files but their own sources."""
