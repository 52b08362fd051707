"""A real Kubernetes control plane on this machine, for tests and measurements: etcd, kube-apiserver, kube-controller-manager.

`RealCluster` starts and stops one in seconds (cluster.py), `SimulatedNode` plays the kubelet for thousands of pods (node.py),
`Http` is a bare client for both this and devcluster (http.py). `python -m tools.realcluster` starts one for a person.
Nothing here runs a container and nothing needs root.
"""

from tools.realcluster.cluster import RealCluster
from tools.realcluster.programs import NotBuilt, find_programs

__all__ = ["NotBuilt", "RealCluster", "find_programs"]
