"""Networks whose weights are tied, or held in part."""
