"""A single-machine stand-in for a Kubernetes cluster: API server, a few controllers, and a node that runs local processes.

`gryvia_devcluster.cluster.DevCluster` is the whole of it. Nothing is imported here, so that the pure parts (patch, schema)
can be used without the server.
"""
