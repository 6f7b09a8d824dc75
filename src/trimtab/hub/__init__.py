"""Kinds that are served from elsewhere: one view of each resource over the services that hold its data.

A request comes down through the proxies to an accessor, which speaks to a service:

    server → AccessorBackend → auth → validate → default → version → lineage → hydrate → cache → (ledger) → accessor → service

Above `hydrate` a reference is a name; below it, it is the service's ID. `contract.py` has all the words.
"""
