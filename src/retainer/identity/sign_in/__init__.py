"""Signing in to the console, and the throttle that slows guessers down."""
