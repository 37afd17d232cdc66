"""Networks whose gates do not see their weights."""
