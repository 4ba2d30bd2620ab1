"""Transfer: a whole installation copied from one database into another, of either kind."""
