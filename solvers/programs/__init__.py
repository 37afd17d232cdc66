"""Programs that are solved, and the maps and designs that they are made of."""
