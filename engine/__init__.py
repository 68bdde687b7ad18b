"""What to do next: pure decisions over the log. No clock, no randomness, no I/O."""
