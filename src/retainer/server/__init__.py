"""The server: HTTP around the application, what operators rely on, and the processes."""
