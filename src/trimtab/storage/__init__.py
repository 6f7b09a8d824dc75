"""What does not fit in a resource.

Blobs are content-addressed and named by digest in a resource; scratch is what can be rebuilt.
"""
