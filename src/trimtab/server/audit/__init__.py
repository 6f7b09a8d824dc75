"""The audit log: who asked for what, and what came of it, as far as a policy says (audit.k8s.io/v1).

`policy` decides how much is told of a request, `trail` makes the events of one, `log` writes them. A server without a policy
has none of it: `Server.audit` is None, and that is all a request asks.
"""
