"""One run of `compare`: setup, prediction, training, findings, report."""
