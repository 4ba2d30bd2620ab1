"""Other programs beside Retainer, in one run on the same core."""
