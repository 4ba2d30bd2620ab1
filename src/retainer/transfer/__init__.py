"""Transfer: copy an installation from one database into another, of either kind."""
