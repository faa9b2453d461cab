"""From batches of bicliques to parts in Parquet, on a core, on several, or on a GPU."""
