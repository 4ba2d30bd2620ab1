"""Documents: invoices, quotes and credit notes as PDF, and as the e-invoice of EN 16931.

Pure functions lead from facts to bytes: `facts` has the types, `pdf` renders them, `einvoice` writes the XML.
"""
