"""Documents of other programs, imported as they were."""
