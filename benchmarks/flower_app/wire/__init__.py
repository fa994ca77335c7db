"""What `benchmarks/flower.py` runs."""
