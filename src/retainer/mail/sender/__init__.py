"""Sender of mail: lease a message, draw its documents, give it to the mail server, save what became of it."""
