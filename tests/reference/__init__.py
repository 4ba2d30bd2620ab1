"""A second implementation of money, days and reports, made from the rules alone, with nothing of the product."""
