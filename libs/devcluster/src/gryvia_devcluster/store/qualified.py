"""Names as Kubernetes qualifies them: DNS labels and subdomains, keys and values of labels. What is wrong with one, in its words."""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_LABEL = re.compile(rf"^{_LABEL}$")
DNS_SUBDOMAIN = re.compile(rf"^{_LABEL}(\.{_LABEL})*$")
LABEL_HINT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_HINT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_NAME_HINT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_VALUE_HINT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_LONGEST = 63


def key_errors(key: str) -> list[str]:
    """Of a key of labels or annotations, or of a finalizer: `name` or `dns.subdomain/name`."""
    parts = key.split("/")
    if len(parts) > 2:
        return [
            f"a valid label key {_NAME_HINT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    errors = []
    if len(parts) == 2:
        errors += _prefix_errors(parts[0])
    name = parts[-1]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name) > _LONGEST:
        errors.append(f"name part must be no more than {_LONGEST} bytes")
    if not _NAME.fullmatch(name):
        errors.append(f"name part {_NAME_HINT}")
    return errors


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    errors = []
    if len(prefix) > 253:
        errors.append("prefix part must be no more than 253 bytes")
    return errors if DNS_SUBDOMAIN.match(prefix) else [*errors, f"prefix part {SUBDOMAIN_HINT}"]


def value_errors(value: str) -> list[str]:
    """Of a label's value."""
    errors = [f"must be no more than {_LONGEST} bytes"] if len(value) > _LONGEST else []
    return errors if _VALUE.fullmatch(value) else [*errors, _VALUE_HINT]
