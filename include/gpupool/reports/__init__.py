"""Pages for people, built from the tables."""
