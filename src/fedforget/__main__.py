"""`python -m fedforget`: the command line."""

from .cli import main

main()
