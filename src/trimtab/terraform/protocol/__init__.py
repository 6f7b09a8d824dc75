"""Terraform's plugin protocol: the messages as tables, and servers that answer, join or translate them."""
