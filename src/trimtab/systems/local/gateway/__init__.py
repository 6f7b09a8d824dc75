"""The local data plane: Services and VirtualServices, realised by one real Envoy that reads its configuration from files.

To read: `world` (what it is made from), `translate` (the pure heart), `istio` (fields of Istio's kinds to Envoy's), `envoy`
(the process, its files, its admin interface), `metrics` (what it counted, in Istio's names), `controller` (drives it all).
"""
