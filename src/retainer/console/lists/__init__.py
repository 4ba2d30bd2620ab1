"""Lists of records in the console: their columns, filters and pages."""
