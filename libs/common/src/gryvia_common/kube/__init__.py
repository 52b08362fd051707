"""The Kubernetes API as the services use it: resources, objects, the client, and builders for child objects."""
