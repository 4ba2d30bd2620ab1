"""Shared rules of several areas: relations, ownership, numbering."""
