"""What every endpoint shares: the stages of a request, and the declarations that feed them."""
