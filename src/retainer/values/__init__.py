"""Values: parsing and formatting of each kind of value, money and instants without floats, strict JSON."""
