"""Texts: words and records for people. Decisions never read them, so they may change freely."""
