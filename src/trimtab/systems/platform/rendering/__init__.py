"""From an artifact to the documents that are applied: `sources` gets files, `helm` runs charts, `manifests` reads YAML."""
