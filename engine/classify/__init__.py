"""Classification: from typed evidence to a reading of it. Frozen per table number."""
