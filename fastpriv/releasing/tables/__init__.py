"""Tables that are released: in memory, CSV and Parquet."""
