"""What does not fit in a resource: blobs, content-addressed and named by digest in a resource, and scratch, which can be rebuilt."""
