"""Active sets and working sets of samples and of groups."""
