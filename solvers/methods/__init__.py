"""Methods that solve the programs, by name and by the shape of the data."""
