"""Istio's kinds, read field by field into Envoy's configuration. Pure: documents in, documents and problems out."""
