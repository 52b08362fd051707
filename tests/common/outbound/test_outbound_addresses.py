"""Which addresses are refused, in whatever form they are written, and what an operator's exceptions open."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.errors import Terminal
from gryvia_common.outbound.addresses import addresses, is_metadata, literal, why_refused
from gryvia_common.outbound.allowed import Allowed
from gryvia_common.outbound.target import header_problems, parse_target, shown


def words(text: str) -> list[str]:
    return text.split()


REFUSED = words("""
    0.0.0.0 0.1.2.3 127.0.0.1 127.255.255.254 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1
    100.127.255.254 100.100.100.200 169.254.169.254 169.254.170.2 168.63.129.16 192.0.0.192 192.0.2.1 198.51.100.7
    203.0.113.9 192.88.99.1 198.18.0.1 198.19.255.255 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1
    ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:10.1.2.3 ::ffff:0:127.0.0.1 fe80::1 febf::1 fec0::1
    fc00::1 fd00:ec2::254 fd20:ce::254 ff02::1 100::1 2001::1 2001:db8::1 2001:2::1 3fff::1 5f00::1 2002:7f00:1::
    2002:a9fe:a9fe::1 64:ff9b::a9fe:a9fe 64:ff9b::10.0.0.1 64:ff9b:1::1.1.1.1 4000::1 2600:1f::5efe:7f00:1
    2600:1f::200:5efe:a9fe:a9fe
""")
PUBLIC = words("""
    1.1.1.1 8.8.8.8 11.0.0.1 100.63.255.255 100.128.0.1 169.253.255.255 169.255.0.1 172.15.255.255 172.32.0.1
    192.0.1.1 223.255.255.255 168.63.129.17 2606:4700:4700::1111 2a00:1450:4001:80b::200e ::ffff:8.8.8.8
    64:ff9b::8.8.8.8 2002:808:808::1 2001:4860::8888
""")


@pytest.mark.parametrize("text", REFUSED)
def test_what_not_everybody_can_reach_is_refused(text: str) -> None:
    assert why_refused(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_what_everybody_can_reach_may_be_called(text: str) -> None:
    assert why_refused(ip_address(text)) == ""


@given(st.ip_addresses())
def test_nothing_that_python_knows_to_be_special_is_public(address: IPv4Address | IPv6Address) -> None:
    special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
    )
    inside = isinstance(address, IPv6Address) and (address.ipv4_mapped or address in IPV6_TRANSLATED)
    # 192.0.0.9 and .10 are anycast services of the registry that this list leaves reserved; the other way round is what counts.
    if special and not inside:
        assert why_refused(address)


IPV6_TRANSLATED = frozenset({IPv6Address("64:ff9b::")})
BYTES = st.integers(0, 255)


@st.composite
def spellings(draw: st.DrawFn, address: int) -> str:
    """One of the ways in which inet_aton takes an IPv4 address."""
    count = draw(st.integers(1, 4))
    values = [(address >> (24 - 8 * index)) & 0xFF for index in range(count - 1)]
    values.append(address & (256 ** (5 - count) - 1))
    forms = [
        draw(
            st.sampled_from((str(value), hex(value), f"0X{value:x}", f"0{value:o}", f"000{value:o}", f"0x000{value:X}"))
        )
        for value in values
    ]
    return ".".join(forms) + draw(st.sampled_from(("", ".")))


@given(
    st.data(),
    st.one_of(st.sampled_from([int(IPv4Address(one)) for one in REFUSED if ":" not in one]), st.integers(0, 2**32 - 1)),
)
def test_an_ipv4_address_is_the_same_in_every_spelling(data: st.DataObject, address: int) -> None:
    text = data.draw(spellings(address))
    assert literal(text) == IPv4Address(address)
    assert parse_target(f"http://{text}/x").raw_host == str(IPv4Address(address))


@given(st.sampled_from([one for one in REFUSED if ":" not in one]), st.data())
def test_unicode_digits_and_dots_are_no_way_round(text: str, data: st.DataObject) -> None:
    wide = {str(n): chr(0xFF10 + n) for n in range(10)}
    written = "".join(data.draw(st.sampled_from((one, wide.get(one, one) if one != "." else "。"))) for one in text)
    assert parse_target(f"http://{written}/").raw_host == text


@pytest.mark.parametrize(
    "host", ["256.1.1.1", "1.2.3.4.5", "1.16777216", "0x1ffffffff", "08.1.1.1", "1..2", "0x.0x.0x.0xg1.1", "9" * 50]
)
def test_what_looks_like_an_address_and_is_none_is_refused(host: str) -> None:
    with pytest.raises(Terminal, match="is not an IPv4 address"):
        literal(host)


@pytest.mark.parametrize(
    "host",
    ["example.com", "a-b.example.", "1.example", "0x7f.example", "localhost", "xn--bcher-kva.example"],
)
def test_names_are_no_addresses(host: str) -> None:
    assert literal(host) is None


@pytest.mark.parametrize("host", ["fe80::1%eth0", "fe80::1%25eth0", "::g", "1:2:3"])
def test_zones_and_broken_ipv6_are_refused(host: str) -> None:
    with pytest.raises(Terminal):
        literal(host)


def test_a_resolvers_answer_with_a_zone_cannot_be_checked() -> None:
    with pytest.raises(Terminal, match="no address that can be checked"):
        addresses(["fe80::1%2"])


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://example.com/", "use http or https"), ("file:///etc/passwd", "use http or https"), ("example.com/x", "http or https"),
        ("gopher://127.0.0.1:6379/_x", "use http or https"), ("", "use http or https"), ("http://", "no host"),
        ("http:///x", "no host"),
        ("http://example.com:0/", "port 0"), ("http://example.com:99999/", "cannot be read"),
        ("http://user:pw@example.com/", "user or password"),
        ("http://user@example.com/", "user or password"), ("http://:@example.com/", "user or password"),
        ("http://exa mple.com/", "a space"), ("http://example.com/\r\nHost: x", "a space"), ("http://a\\b/", "backslash"),
        ("http://%6cocalhost/", "not a host name"), ("http://a..b/", "not a host name"), ("http://a,b/", "not a host name"),
        ("http://[::1%25lo]/", "zone id"), ("http://[::1/", "cannot be read"), ("http://1.2.3.400/", "not an IPv4 address"),
        ("http://example.com/" + "a" * 9000, "at most 8192"),
    ],
)  # fmt: skip
def test_what_is_no_url_to_call_is_named(url: str, words: str) -> None:
    with pytest.raises(Terminal) as refused:
        parse_target(url)
    assert words in str(refused.value)
    assert "pw" not in str(refused.value)


@given(st.text(max_size=60))
def test_any_text_is_a_target_or_is_refused_with_a_sentence(text: str) -> None:
    for candidate in (text, f"http://{text}", f"https://{text}/"):
        try:
            host = parse_target(candidate).raw_host
        except Terminal:
            continue
        assert host


def test_only_the_origin_of_a_url_is_shown() -> None:
    assert shown(parse_target("https://hooks.example/services/T0/secret?token=x#y")) == "https://hooks.example"
    assert shown(parse_target("http://[2606:4700::1]:8080/secret")) == "http://[2606:4700::1]:8080"


def test_headers_that_follow_from_the_call_or_break_it_are_named_without_their_values() -> None:
    given_headers = {"X-Ok": "v\tw", "Host": "secret", "content-length": "secret", "Proxy-Authorization": "secret",
                     "bad name": "secret", "X-Broken": "secret\r\nX-Other: y", "": "secret"}  # fmt: skip
    found = list(header_problems(given_headers))
    assert len(found) == 6
    assert not any("secret" in one for one in found)


PRIVATE, METADATA = ip_address("10.1.2.3"), ip_address("169.254.169.254")


@pytest.mark.parametrize(
    ("entries", "host", "port", "address", "opens"),
    [
        ([], "a.example", 80, "10.1.2.3", False),
        (["a.example"], "a.example", 80, "10.1.2.3", True),
        (["A.Example"], "a.EXAMPLE.", 8080, "10.1.2.3", True),
        (["a.example"], "b.a.example", 80, "10.1.2.3", False),
        (["a.example:8080"], "a.example", 8080, "10.1.2.3", True),
        (["a.example:8080"], "a.example", 80, "10.1.2.3", False),
        (["10.0.0.0/8"], "a.example", 80, "10.1.2.3", True),
        (["10.0.0.0/8"], "a.example", 80, "::ffff:10.1.2.3", True),
        (["10.0.0.0/8"], "a.example", 80, "11.1.2.3", True),
        (["10.1.2.3:9000"], "10.1.2.3", 9000, "10.1.2.3", True),
        (["10.1.2.3:9000"], "10.1.2.3", 9001, "10.1.2.3", False),
        (["[fd00::1]:9000"], "fd00::1", 9000, "fd00::1", True),
        (["fd00::/8"], "fd00::1", 9000, "fd00::1", True),
        (["10.1.2.3"], "10.1.2.4", 80, "10.1.2.4", False),
        (["metadata.internal"], "metadata.internal", 80, "169.254.169.254", False),
        (["metadata.internal"], "metadata.internal", 80, "::ffff:169.254.169.254", False),
        (["169.254.169.254"], "metadata.internal", 80, "169.254.169.254", True),
    ],
)
def test_exceptions(entries: list[str], host: str, port: int, address: str, opens: bool) -> None:
    assert (Allowed.parse(entries).why_not(host, port, ip_address(address)) == "") is opens


@pytest.mark.parametrize(
    "entry", ["10.0.0.0/33", "a.example:0", "a.example:70000", "http://a.example", "*.example", "10.0.0", "a b"]
)
def test_an_exception_that_is_none_is_named(entry: str) -> None:
    with pytest.raises(Terminal) as refused:
        Allowed.parse([entry])
    assert repr(entry) in str(refused.value)


def test_metadata_addresses_are_known_in_every_dress() -> None:
    for text in ("169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "fe80::a9fe:a9fe"):
        assert is_metadata(ip_address(text))
    assert not is_metadata(PRIVATE)
    assert is_metadata(METADATA)
