"""Files of data: what each format holds, and how it is read."""
