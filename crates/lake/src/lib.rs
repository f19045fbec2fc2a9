//! The lake: Parquet files on disk, written in a fixed slice of memory and read back.
