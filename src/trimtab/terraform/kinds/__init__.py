"""What a kind of the API is in Terraform: a resource, and data sources for one object and for many, with no code written.

The server's OpenAPI becomes `Definition`s (naming, shaping), those are kept in a file (snapshot) and become schemas of the
framework (attributes). Values and documents are turned into each other by the definition alone (converting, reading).
"""
