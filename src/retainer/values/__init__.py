"""Values: how each kind is read and written, money and instants without floats, JSON in one way only."""
