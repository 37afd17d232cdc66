"""Arrays, checks of arguments, sums with proved errors, memory and threads."""
