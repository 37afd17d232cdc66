"""`python -m implicit_bias compare ...`."""

from .cli import main

main()
