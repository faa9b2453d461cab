"""Where slices run: in this process, in others, on a Dask cluster, on GPUs."""
