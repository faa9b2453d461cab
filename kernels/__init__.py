"""The algorithms, from arrays to arrays. They use no Dask, no Prefect, and no files but their own sources."""
