"""A candidate for a Lease, by the official client; prints a line when it leads."""

import sys

from kubernetes import config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

if __name__ == "__main__":
    kubeconfig, namespace, name = sys.argv[1:]
    config.load_kube_config(kubeconfig)
    settings = electionconfig.Config(
        LeaseLock("leader", namespace, name),
        lease_duration=3,
        renew_deadline=2,
        retry_period=1,
        onstarted_leading=lambda: print(f"{name} leads", flush=True),
        onstopped_leading=lambda: None,
    )
    leaderelection.LeaderElection(settings).run()
