"""Measurements. Figures are ratios taken in one run beside the physical limit, never tests."""
