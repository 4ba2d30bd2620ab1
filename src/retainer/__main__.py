"""`python -m retainer` is the command `retainer`."""

from retainer.cli import main

main()
