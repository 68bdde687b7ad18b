"""Decisions: what follows from a fact. Frozen per `logic`. A module names its sections of rules."""
