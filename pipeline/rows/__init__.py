"""The rows of one or several Parquet files as a collection, and what a notebook shows of them."""
