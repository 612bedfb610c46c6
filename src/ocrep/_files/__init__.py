"""Files of rows (CSV, Parquet, Arrow): formats, readers, writers, and atomic replacement. Import from its modules."""
