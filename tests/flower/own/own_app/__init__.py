"""A Flower app somebody might have. The lines marked are all that makes it able to forget; the docs show the same."""
