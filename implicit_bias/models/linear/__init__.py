"""Linear networks of every depth: one hard-margin SVM."""
