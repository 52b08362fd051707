"""Kubernetes' dialect of the Common Expression Language, for `x-kubernetes-validations`.

The engine is Google's cel-cpp through `cel-expr-python`. Of the three libraries compared on 49 expressions as Kubernetes
writes them it got 34 right before any function was added (common-expression-language 24, cel-python 23), evaluates one in
7 µs (32, 300), checks types and knows optional values (neither other does), and costs 2 ms and 6 MB to import (100 ms and
25 MB, 45 ms and 15 MB). Kubernetes' own functions are added in Python. It is imported when the first rule is compiled.

Not modelled: cost estimates, comprehensions of two variables, `format.named`, and the check that a field exists where the
path starts at a comprehension's variable.
"""
