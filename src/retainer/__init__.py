"""Retainer: the back office of an agency behind one API."""

__version__ = "0.2.0"
