"""Deployments as processes of this machine, and Services and VirtualServices as one Envoy. Only with `--local-workloads`."""
