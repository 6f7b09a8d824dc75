"""Pods as processes: each container of a pod is a process in a session of its own, on the pod's own loopback address."""
