"""Small files of time, as the programs export them: their headings, and rows with what goes wrong with each."""

HARVEST = """\
Date,Client,Project,Project Code,Task,Notes,Hours,Billable?,Invoiced?,Approved?,First Name,Last Name,Roles,Employee?,Billable Rate,Billable Amount,Cost Rate,Cost Amount,Currency,External Reference URL
2026-03-02,Nordwind,Shop,NW-1,Design,Draft,"20,0",Yes,Yes,No,Ana,Ott,,Yes,"100,0","2.000,0","0,0","0,0",Euro - EUR,
2026-03-03,Nordwind,Shop,NW-1,Design,Again,"1,5",Yes,No,No,Ana,Ott,,Yes,"100,0","150,0","0,0","0,0",Euro - EUR,
2026-03-03,Nordwind,Shop,NW-1,Design,Again,"1,5",Yes,No,No,Ana,Ott,,Yes,"100,0","150,0","0,0","0,0",Euro - EUR,
2026-03-04,,Internal,,,Meeting,"0,25",No,No,No,Ben,Lenz,,Yes,"0,0","0,0","0,0","0,0",Euro - EUR,
2026-03-05,Nordwind,Shop,NW-1,,=1+1,"0,0",Yes,No,No,Ben,Lenz,,Yes,"100,0","0,0","0,0","0,0",Euro - EUR,
"""  # noqa: E501
TOGGL = """\
\ufeffUser,Email,Client,Project,Task,Description,Billable,Start date,Start time,End date,End time,Duration,Tags,Amount (EUR)
Ana Ott,ana@studio.example,Nordwind,Shop,Design,Draft,Yes,2026-03-02,10:23:52,2026-03-02,11:23:53,01:00:01,"Web, UX",80.00
Ana Ott,ana@studio.example,,,,Break,No,2026-03-02,12:00:00,2026-03-02,12:00:00,00:00:00,,
Ana Ott,ana@studio.example,,,,Reading,No,2026-03-02,12:00:00,2026-03-02,12:30:00,00:30:00,,
"""  # noqa: E501
CLOCKIFY = """\
"Project","Client","Description","Activity","User","Group","Email","Tags","Billable","Invoiced","Invoice ID","Start Date","Start Time","End Date","End Time","Duration (h)","Duration (decimal)","Billable Rate (USD)","Billable Amount (USD)"
"Shop","Nordwind","C:\\new","Design","Ana Ott","","ana@studio.example","","Yes","Yes","INV-1","03/14/2026","10:23 AM","03/14/2026","11:23:01 AM","01:00:01","1.00","80.00","80.02"
"""  # noqa: E501
KIMAI = """\
Datum;Von;Bis;Dauer;Währung;Preis;Interner Preis;Preis pro Stunde;Festpreis;Name;Benutzer;E-Mail;Personalnummer;Kunde;Projekt;Tätigkeit;Beschreibung;Abrechenbar;Schlagworte;Typ;category;Kundennummer;Projektnummer;Umsatzsteuer-ID;Bestellnummer
03.04.2026;23:30;00:30;1:00;EUR;80,00;0;80,00;;Ana Ott;ana;ana@studio.example;;Müller;Shop;Design;Entwurf;Ja;;timesheet;work;;;;
"""  # noqa: E501
SOLIDTIME = """\
description,billable,client,project,tags,start,end,task,user_name,user_email
Draft,true,Nordwind,Shop,,2026-03-02T09:23:00Z,2026-03-02T10:23:00Z,Design,Ana Ott,ana@studio.example
"""
OWN = """\
day,person,customer,job,minutes,id
2026-03-02,Ana Ott,Nordwind,Shop,90,17
"""
