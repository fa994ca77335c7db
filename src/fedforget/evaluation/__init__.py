"""Measures: quality, distance to the retrained model, membership attacks, theory. Plain arrays in, numbers out."""
