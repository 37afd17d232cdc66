"""Which networks are the same function, and how far apart two of them are."""
