"""Findings of a run and their report: record, row, text, page, files. They know no run."""
