"""The stages of an API request, and the declarations of operations that feed them."""
