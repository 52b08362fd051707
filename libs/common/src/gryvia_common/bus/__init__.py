"""NATS JetStream as the platform uses it: connection, streams, subjects, CloudEvents, leases."""
