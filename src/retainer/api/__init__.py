"""The resources: one file for each, always in the same order: table, type, filter, rules, routes."""
