"""Kinds in several versions: objects are stored in one of them, and converted for those who ask for another."""
