"""What a measured number is called, how it is shown, and what it is where theory is right."""
