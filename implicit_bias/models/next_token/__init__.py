"""Next tokens: a linear decoder of contexts, each of which several tokens may follow."""
