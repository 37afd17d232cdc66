"""The names of the files in the folder of a run."""

from __future__ import annotations

__all__ = ["INDEX", "REPORT", "RESULTS"]

# Which run the folder holds, whether it is finished, and the files that it has written.
INDEX = "run.json"
RESULTS, REPORT = "results.json", "report.safetensors"
