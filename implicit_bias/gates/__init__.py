"""Which units are open: gatings fitted to data, and how gates change."""
