"""Reports on disk: what is written, and how it is read again."""
