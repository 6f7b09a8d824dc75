"""The systems: each a package with `kinds`, and `system.SYSTEM`. None imports another."""
