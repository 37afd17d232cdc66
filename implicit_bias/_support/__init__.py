"""What every room stands on and no reader asks for: doors, names, files, lazy imports."""

# A build reads it without importing anything.
__version__ = "0.1.0"
