"""Options of runs: fields, values, defaults, the command line. They know no model."""
