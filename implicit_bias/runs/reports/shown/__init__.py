"""Reports as people see them: the first screen, the text, the page."""
