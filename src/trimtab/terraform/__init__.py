"""The Terraform provider: plugin protocol 6 in Python, and every Trimtab kind as a Terraform resource.

Nothing is imported here. A provider is started three to five times for one `terraform apply`, and what stands on the way
to its first line must be the standard library alone.
"""
