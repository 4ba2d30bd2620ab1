"""The database: tables, transactions, engines and migrations. Nothing above this layer knows a dialect."""
