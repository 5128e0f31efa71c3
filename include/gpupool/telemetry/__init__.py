"""Reading devices and judging what was read."""
