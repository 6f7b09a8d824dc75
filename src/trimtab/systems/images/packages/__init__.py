"""What package databases and manifests in an image say: one module a format, bytes in, packages out, no I/O."""
