"""The workers that run slices: in this process, in other processes, on a Dask cluster, or on GPUs."""
