"""Vendor knowledge as data: `choice`, which profile a device has; `extends`, how profiles build on others; `values`, how
an answer is read; `check`, what is wrong with a profile."""
