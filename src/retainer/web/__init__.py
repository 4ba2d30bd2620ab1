"""Pages for people: the look that they share, their templates, assets, and the headers of HTML."""
