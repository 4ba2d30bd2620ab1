"""Addresses: the form in which mail servers take them."""

import idna

BAD_LOCAL_PART = "Has letters before the @ that few mail servers accept. Use another address of this person."
NO_DOMAIN = "Has a domain that does not exist in this form. Correct it."


def wire_address(address: str) -> str:
    """Return an address with its domain as name servers know it: `kunde@xn--mller-kva.example`.

    Raises ValueError, with a sentence, for one that mail servers do not take.
    """
    local, _, domain = address.rpartition("@")
    if not local.isascii() or "=?" in local:  # SMTPUTF8 on every server on its way (RFC 6531), an encoded word
        raise ValueError(BAD_LOCAL_PART)
    try:
        return f"{local}@{domain if domain.isascii() else idna.encode(domain, uts46=True).decode()}"
    except idna.IDNAError:
        raise ValueError(NO_DOMAIN) from None
