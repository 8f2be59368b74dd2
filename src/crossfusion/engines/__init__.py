"""Who reads and reduces the parts of a source: threads of this process, Dask or Spark."""
