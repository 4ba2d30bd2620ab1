"""Credit notes: what they take back of an invoice, at which tax rates and from which projects."""
