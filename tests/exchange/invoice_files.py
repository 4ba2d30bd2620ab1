"""Small files of invoices, as the programs export them, with what goes wrong with each; and a ZIP with PDFs."""

import io
import zipfile

FRESHBOOKS = """\
Client Name,Invoice #,Date Issued,Invoice Status,Date Paid,Item Name,Item Description,Rate,Quantity,Discount Percentage,Line Subtotal,Tax 1 Type,Tax 1 Amount,Tax 2 Type,Tax 2 Amount,Line Total,Currency
Nordwind,INV-2021-0007,2021-01-28,sent,,Concept,First draft,65.00,10.00000000,0.0000,650.00,VAT,123.51,,0.00,773.51,EUR
Nordwind,INV-2021-0007,2021-01-28,sent,,Travel,,33.33,3.00000000,0.0000,100.00,VAT,19.00,,0.00,119.00,EUR
Nordwind,INV-2021-0009,2021-02-01,paid,2021-02-20,Concept,,100.00,1.00000000,10.0000,90.00,VAT,17.10,,0.00,107.10,EUR
Elbe Küchen,0000010,2021-02-02,paid,2021-02-20,Hosting,,5.00,1.00000000,0.0000,5.00,GST,0.25,PST,0.35,5.60,CAD
Nordwind,INV-2021-0012,2021-03-01,draft,,Concept,,100.00,1.00000000,0.0000,100.00,VAT,19.00,,0.00,119.00,EUR
Nordwind,INV-2021-0011,2021-03-01,sent,,Concept,,100.00,1.00000000,0.0000,100.00,VAT,19.00,,0.00,120.00,EUR
Nordwind,INV-2021-0011,2021-03-01,sent,,Travel,,10.00,1.00000000,0.0000,10.00,VAT,1.90,,0.00,11.90,EUR
"""  # noqa: E501
"""A tax of 123.51 on 650.00 is one cent beside 19 %; 3 x 33.33 is not 100.00; a line of 120.00 has parts of 119.00."""
NINJA = """\
"Invoice Ninja v4.5.17 - December 19, 2020 11:28 pm",,,,,,,,,,,,,,,,,
,,,,,,,,,,,,,,,,,
Invoices,,,,,,,,,,,,,,,,,
Client,Email,Invoice Number,Amount,Paid,PO Number,Status,Invoice Date,Due Date,Discount,Partial/Deposit,Partial Due Date,Public Notes,Private Notes,Item Product,Item Notes,Item Cost,Item Quantity
Bergmann,ana@bergmann.example,1,$13.50,$5.01,PO 7,Partial,2019-11-25,2019-10-20,,,,Thank you,,Sticker,Round,$4.50 ,3
Bergmann,ana@bergmann.example,0001,$90.00,$0.00,,Sent,2019-11-26,2019-12-20,$10.00,,,,,Print,,$50.00 ,2
Bergmann,ana@bergmann.example,3,$20.00,$0.00,,Cancelled,2019-11-27,2019-12-20,,,,,,Print,,$20.00 ,1
"""  # noqa: E501
PAYMENTS = """\
Client,Invoice Number,Amount,Date
Bergmann,1,$2.01 ,10/20/2019
Bergmann,1,$3.00 ,11/28/2019
"""
CREDITS = """\
Credit Number,Invoice Number,Credit Date,Amount,Reason
GS-1,1,11/29/2019,$3.50,Scratched
GS-2,0001,11/30/2019,$-90.00,
GS-3,99,12/01/2019,$1.00,
GS-4,1,12/02/2019,$20.00,
"""
"""GS-2 has a minus, GS-3 names no invoice of the file, and GS-4 credits more than is left."""
PLAIN = """\
Number;Date;Due;Client;Status;Total;Tax;Paid;Paid on
R-100;31.01.2025;14.02.2025;Nordwind;bezahlt;1.190,00;190,00;1.190,00;10.02.2025
R-101;28.02.2025;14.03.2025;Nordwind;offen;595,01;95,01;;
"""


def pdf(text: str) -> bytes:
    return b"%%PDF-1.4\n%s\n%%%%EOF\n" % text.encode()


def packed(**files: bytes | str) -> bytes:
    """Return a ZIP with these files; the names are those of the arguments with `__` for a dot."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, each in files.items():
            archive.writestr(name.replace("__", "."), each)
    return content.getvalue()
