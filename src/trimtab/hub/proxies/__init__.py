"""What comes between the server and an accessor, each doing one thing. A proxy is made of the accessor below it:
`Lineage(Hydrate(accessor, …), …)`, in the order that `trimtab.hub` gives."""
