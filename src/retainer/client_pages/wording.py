"""Wording: what client pages say, in English and German. Documents have their own words."""

from retainer.documents.facts import Language

TEXTS = {
    "unusable": ("This link does not work", "Dieser Link funktioniert nicht"),
    "unusable_why": (
        "It may have expired or been revoked, or was not copied completely. Ask the sender for a new one.",
        (
            "Er ist vielleicht abgelaufen, wurde widerrufen oder nicht vollständig kopiert. "
            "Bitten Sie den Absender um einen neuen."
        ),
    ),
    "draft": ("This document is being revised", "Dieses Dokument wird überarbeitet"),
    "draft_why": (
        "{issuer} will tell you when you can open it again.",
        "{issuer} gibt Ihnen Bescheid, wenn Sie es wieder öffnen können.",
    ),
    "error": ("Error", "Fehler"),
    "many": ("Too many requests", "Zu viele Anfragen"),
    "many_why": ("Wait a minute, then open the link again.", "Warten Sie eine Minute und öffnen Sie den Link erneut."),
    "failed": ("This did not work", "Das hat nicht geklappt"),
    "failed_why": (
        "Open the link again. If that does not help, contact the sender and name the request {id}.",
        (
            "Öffnen Sie den Link erneut. Wenn das nicht hilft, wenden Sie sich an den Absender und nennen Sie "
            "die Anfrage {id}."
        ),
    ),
    "quote_open": ("Please answer by {date}.", "Bitte antworten Sie bis zum {date}."),
    "quote_accepted": (
        "This quote was accepted on {date}. {issuer} will contact you about the next steps.",
        "Dieses Angebot wurde am {date} angenommen. {issuer} meldet sich bei Ihnen wegen der nächsten Schritte.",
    ),
    "quote_accepted_by": (
        "{name} accepted this quote on {date}. {issuer} will contact you about the next steps.",
        "{name} hat dieses Angebot am {date} angenommen. {issuer} meldet sich bei Ihnen wegen der nächsten Schritte.",
    ),
    "quote_declined": ("This quote was declined on {date}.", "Dieses Angebot wurde am {date} abgelehnt."),
    "quote_expired": (
        "This quote was valid until {date}. Ask {issuer} for a new one.",
        "Dieses Angebot war bis zum {date} gültig. Bitten Sie {issuer} um ein neues.",
    ),
    "quote_cancelled": ("{issuer} has withdrawn this quote.", "{issuer} hat dieses Angebot zurückgezogen."),
    "invoice_void": (
        "This invoice is void. Nothing is to be paid.",
        "Diese Rechnung ist storniert. Es ist nichts zu zahlen.",
    ),
    "overdue": ("This invoice was due on {date}.", "Diese Rechnung war am {date} fällig."),
    "paid": ("Paid", "Bezahlt"),
    "credited": ("Credited", "Gutgeschrieben"),
    "balance_due": ("Balance due", "Offener Betrag"),
    "download_pdf": ("Download PDF", "PDF herunterladen"),
    "download_xml": ("E-invoice (XML)", "E-Rechnung (XML)"),
    "lines": ("Lines", "Positionen"),
    "payment": ("Payment", "Zahlung"),
    "pay_now": ("Pay now", "Jetzt bezahlen"),
    "files": ("Files", "Dateien"),
    "answer": ("Your answer", "Ihre Antwort"),
    "choose_options": ("Optional lines, before tax", "Optionale Positionen, vor Steuern"),
    "options_hint": (
        "The lines that you choose are added to the total.",
        "Die gewählten Positionen kommen zum Gesamtbetrag hinzu.",
    ),
    "confirm_total": (
        "With the lines that you chose, the total is {total}. To accept the quote for it, press the button once more.",
        (
            "Mit den gewählten Positionen beträgt der Gesamtbetrag {total}. Um das Angebot dafür anzunehmen, drücken "
            "Sie die Schaltfläche noch einmal."
        ),
    ),
    "choose_one": ("Choose at least one line.", "Wählen Sie mindestens eine Position."),
    "your_name": ("Your name", "Ihr Name"),
    "name_missing": ("Enter your name.", "Geben Sie Ihren Namen ein."),
    "name_controls": ("Enter a name without control characters.", "Geben Sie einen Namen ohne Steuerzeichen ein."),
    "too_long": ("Enter at most {length} characters.", "Geben Sie höchstens {length} Zeichen ein."),
    "reason": ("Reason (optional)", "Grund (freiwillig)"),
    "accept_quote": ("Accept quote", "Angebot annehmen"),
    "decline_quote": ("Decline quote", "Angebot ablehnen"),
    "accept_effect": (
        "You accept this quote as shown here. {issuer} sees your answer immediately.",
        "Sie nehmen dieses Angebot an, wie es hier steht. {issuer} sieht Ihre Antwort sofort.",
    ),
    "decline_effect": ("{issuer} sees your answer immediately.", "{issuer} sieht Ihre Antwort sofort."),
    "changed": (
        "The quote has changed since you opened it, so nothing was recorded. Read it again, then answer.",
        (
            "Das Angebot hat sich geändert, seit Sie es geöffnet haben; nichts wurde übernommen. "
            "Lesen Sie es noch einmal und antworten Sie dann."
        ),
    ),
}
WORDS: dict[Language, dict[str, str]] = {
    "en": {name: english for name, (english, _) in TEXTS.items()},
    "de": {name: german for name, (_, german) in TEXTS.items()},
}


def language_of(accepted: str | None) -> Language:
    """Return the language of a page about no document: German if a browser prefers it, else English."""
    return "de" if (accepted or "").lower().startswith("de") else "en"
