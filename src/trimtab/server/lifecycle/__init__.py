"""What the server itself keeps true: namespaces, custom resource definitions, garbage, expiry."""
