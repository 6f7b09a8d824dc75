"""Which known vulnerabilities an image's packages have.

database      advisories in the OSV schema, in one SQLite file; importing, how it is made; changes, what two of them differ in
ecosystems    where to look a package up; versions, how its ecosystem orders versions; ranges, whether one is affected
severity      how bad it is, and who says so
matching      packages and a database in, a report out
vex           what vendors say of a finding: OpenVEX statements that suppress it
"""
