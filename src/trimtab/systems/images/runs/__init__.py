"""Discoveries: the claim of a registry, the states of a run, and the catalogue that a run makes."""
