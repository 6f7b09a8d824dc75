"""Any API from its OpenAPI document: kinds are generated, and a generic reconciler keeps the resources behind them.

Flow: a RestService names an API, a RestDefinition says which of its paths are one kind → `compiling` makes a Model of the
two → the definition's controller keeps the Model in a ConfigMap, defines the kind and starts a controller for it →
that one reconciles each object: render what is wanted (`rendering`), read what is there (`calling`), compare three ways
(`syncing`), write the difference, and say in the status what is true.

kinds/             RestService, RestDefinition
model              what is known of a generated kind: the contract of all that follows
state              what is remembered of one object, in its status
openapi/           documents: loading, references, one form for OpenAPI 2 and 3
compiling/         from a document to proposals (which paths are kinds) and to Models (which fields are what)
generating/        from a Model to a CRD, typed structs, docs, and what a cluster needs
validating         what admission says about a write of a generated kind; admission is the door to it
rendering          from a spec to the body that is wanted: references, secrets, defaults
syncing/           pure: comparators, leaves, the three-way difference, the body of a write, what was learned
calling/           requests: credentials, endpoints, budgets, long-running operations, pages, errors and their classes
reconciling/       the step: one object, one step nearer to its spec; deletion, adoption, refresh, joins, exports
hooks              code of users' own at the points where APIs differ
importing          from what exists to YAML
listening          what services tell of changes
"""
