"""Shared rules: what several areas follow: how records relate, whose they are, how they are numbered."""
