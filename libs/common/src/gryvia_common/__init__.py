"""What every Gryvia service needs and nothing else.

Layers, each importing only those before it: errors and clock; `kube` (the API client); `kinds` (the contract as models);
`bus` (NATS); `runtime` (the controller runtime and the service process). No module here knows a service.
"""
