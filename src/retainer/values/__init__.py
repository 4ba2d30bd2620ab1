"""Values: parsing and formatting of each kind of value, exact money and timestamps, strict JSON."""
