"""Artifacts: the files that a resource names in its spec, streamed in and out, kept as blobs by their digest.

`digests.py` finds the files in a document, `paths.py` says which paths are good, `endpoint.py` serves
`/artifacts`, `pins.py` lets go of bytes that nobody names, `versions.py` lists published versions.
"""
