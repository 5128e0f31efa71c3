"""Delta tables under one root, with idempotent and atomic writes."""
