"""From a file of rows to a trained pipeline, and from the pipeline to predictions (needs pandas and pyarrow)."""
