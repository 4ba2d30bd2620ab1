"""Sender of webhooks: lease a webhook, send what is due and what is new, save the results."""
