"""Engines that run the cells of a sweep: processes, Dask, Slurm."""
