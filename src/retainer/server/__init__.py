"""The server: HTTP around the application, and what operators rely on."""
