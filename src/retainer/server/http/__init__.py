"""HTTP around the application: slots, connections, compression, and pages outside the API."""
