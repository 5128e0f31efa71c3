"""Tables built from samples and attempts (polars only)."""
