"""The provider as `terraform init` wants it: a package with one hash, and the places where Terraform looks for it.

`contents` says what is in the package, `launcher` starts it, `package` writes it, `prepared` makes its start fast on this
machine, `mirror` is what Terraform reads: folders, archives, JSON.
"""
