"""Trimtab: a control plane that you pip install."""

__version__ = "0.1.0"
