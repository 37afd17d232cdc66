"""What every room stands on and no reader asks for: doors, names, files, lazy imports."""
