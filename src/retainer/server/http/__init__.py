"""HTTP around the application: what runs at once, connections, compression, and pages outside the API."""
