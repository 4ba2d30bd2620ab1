"""The pages of the console: functions that read a page's data, or do what its form asks for."""
