"""HTTP around the application: the gate, connections, compression, and pages outside the API."""
