"""Exemptions: why a document charges no tax, as it prints the reason and as its e-invoice says it (BT-120)."""

from retainer.documents.facts import Document, Language
from retainer.documents.tax_categories import Category, categories, is_outside_eu
from retainer.documents.wording import words_of
from retainer.values.vat_numbers import vat_territory

SMALL_BUSINESS: dict[str, dict[Language, str]] = {
    "DE": {
        "de": "Für die Leistung gilt die Steuerbefreiung für Kleinunternehmer (§ 19 UStG).",
        "en": "The VAT exemption for small businesses applies to this service (§ 19 of the German VAT Act, UStG).",
    },
    "AT": {
        "de": "Umsatzsteuerfrei als Kleinunternehmer gemäß § 6 Abs. 1 Z 27 UStG.",
        "en": "Exempt from VAT as a small business (§ 6 Abs. 1 Z 27 of the Austrian VAT Act, UStG).",
    },
}
"""The sentence of small businesses where the law asks for one: § 34a UStDV in Germany, § 11 UStG in Austria."""
OTHER_SMALL_BUSINESS: dict[Language, str] = {
    "de": "Steuerbefreiung für Kleinunternehmen (Artikel 284 der Richtlinie 2006/112/EG).",
    "en": "Exempt from VAT: special scheme for small enterprises (article 284 of Directive 2006/112/EC).",
}


def exemption_reasons(document: Document) -> list[str]:
    return [exemption_reason(document, category) for category in categories(document) if category != "S"]


def exemption_reason(document: Document, category: Category) -> str:
    """Return why a category has no tax.

    The document's own reason takes the place of `exempt` alone, and is added to every other sentence. The account's is
    about lines that are exempt, so it is not added to the sentences of other categories.
    """
    issuer, own = document.issuer, document.tax_exemption_reason
    if category == "E" and not issuer.is_small_business:
        return own or words_of(document)["E"]
    if category == "E":
        country = vat_territory(issuer.country)
        texts = SMALL_BUSINESS.get(country, OTHER_SMALL_BUSINESS) if country else {}
        sentence = texts.get(document.language, words_of(document)["O"])
    else:
        sentence = words_of(document)["outside_eu" if category == "O" and is_outside_eu(document) else category]
        own = own if own != issuer.tax_exemption_reason else None
    return " ".join(filter(None, (sentence, own)))
