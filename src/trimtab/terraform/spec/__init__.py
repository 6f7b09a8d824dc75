"""The provider code specification, version 0.1: schemas of a provider as JSON, read and written.

`read` makes schemas of a document, `emit` a document of schemas; `checking` says all that is wrong with one. What was read
becomes resources at run time (`serving`) or typed Python code (`generating`).
"""
