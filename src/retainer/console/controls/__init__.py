"""Controls: one class for each way in which people see and type a value."""
