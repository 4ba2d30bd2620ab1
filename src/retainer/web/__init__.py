"""HTML pages: the shared layout, templates, assets and security headers."""
