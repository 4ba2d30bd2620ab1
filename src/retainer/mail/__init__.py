"""Mail: messages to clients, queued in the transaction of what causes them, and sent after its commit."""
