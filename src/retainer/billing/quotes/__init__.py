"""Quotes: what they hold, their lines, and what an accepted one becomes."""
