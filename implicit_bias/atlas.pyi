"""Names of `implicit_bias.atlas`, with the modules that they are loaded from."""

from .quantities.selection import which as which
