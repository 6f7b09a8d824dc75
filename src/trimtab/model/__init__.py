"""What a kind is, and what is made from its definition. This room knows no other.

Each idea has its module: `resource` (Resource, Spec), `markers`, `scheme`, `crd`, `openapi`, `schema`, `conditions`,
`health`, `selectors`, `jsonpath`, `clock`, `errors`. Nothing is imported here: each user pays only for what it names.
"""
