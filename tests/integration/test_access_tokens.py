"""What a resource server takes for a token, asked of a real authorisation server on the loopback."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from integration.oauth_issuer import Issuer, authorisation_server, encoded, private_key

from cda.errors import UnavailableError, UsageError
from cda.serving.access_tokens import AccessTokens
from cda.serving.issuer_keys import AGAIN_S, FRESH_S, MAX_BYTES, RETRY_S, WHOLE_S, IssuerKeys, read_keys
from cda.serving.oauth_resource import OAuthResource, principal_name
from cda.serving.principal import Lapsed, Principal
from cda.settings import Settings


@pytest.fixture(scope="module")
def key() -> Any:
    return private_key("RS256")


@pytest.fixture
def issuer(key: Any) -> Iterator[Issuer]:
    with authorisation_server(key) as found:
        yield found


def hasher(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def resource_of(issuer: Issuer, **changed: str) -> OAuthResource:
    found = OAuthResource.of(Settings(_env_file=None, **(issuer.variables | changed)))  # type: ignore[call-arg,arg-type]
    assert found is not None
    return found


def tokens_of(issuer: Issuer, clock: Callable[[], float] = time.monotonic) -> AccessTokens:
    resource = resource_of(issuer)
    return AccessTokens(resource, IssuerKeys(resource.jwks, clock=clock), hasher)


@pytest.mark.promise("oauth.taken")
@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "ES384", "EdDSA"])
def test_a_token_that_the_issuer_signed_names_its_subject_and_opens_its_scopes(issuer: Issuer, algorithm: str) -> None:
    issuer.add("other", algorithm)

    found = tokens_of(issuer).principal(issuer.token("other", scope="openid claims:notes rules:read"))

    assert found is not None
    assert found.tools == {"get_claim_notes", "get_coverage_rule"}
    assert found.id == principal_name(issuer.address, "jane@example.org", hasher)
    assert "jane" not in found.id


TAKEN: list[tuple[str, Callable[[Issuer], str]]] = [
    ("several audiences", lambda i: i.token(aud=["https://other.example", i.resource])),
    ("no type", lambda i: i.token(header={"typ": "JWT"})),
    ("a media type", lambda i: i.token(header={"typ": "application/at+jwt"})),
    ("expired within the leeway", lambda i: i.token(exp=int(time.time()) - 20)),
    ("not yet valid within the leeway", lambda i: i.token(nbf=int(time.time()) + 20)),
    ("a fraction of a second", lambda i: i.token(exp=time.time() + 60.5)),
    ("scopes as a list", lambda i: i.token(scope=None, scp=["claims:all"])),
    ("scopes as a text", lambda i: i.token(scope=None, scp="x claims:all")),
]


@pytest.mark.promise("oauth.taken")
@pytest.mark.parametrize(("name", "make"), TAKEN, ids=[name for name, _ in TAKEN])
def test_a_token_in_another_lawful_form_is_taken(issuer: Issuer, name: str, make: Callable[[Issuer], str]) -> None:
    found = tokens_of(issuer).principal(make(issuer))

    assert found is not None
    assert found.tools is None, "claims:all opens every tool"


def public_pem(issuer: Issuer) -> bytes:
    return bytes(issuer.keys["first"][1].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def of_none(issuer: Issuer, name: str, signature: str) -> str:
    header = json.dumps({"alg": name, "kid": "first", "typ": "at+jwt"})
    return f"{encoded(header.encode())}.{encoded(json.dumps(issuer.claims()).encode())}.{signature}"


def changed_after_signing(issuer: Issuer) -> str:
    header, _, signature = issuer.token(sub="eve").split(".")
    return f"{header}.{encoded(json.dumps(issuer.claims(sub='root')).encode())}.{signature}"


def own_key_inside(issuer: Issuer) -> str:
    """Signed with a key that the token itself brings along, under the id of the real one."""
    issuer.add("mine")
    jwk = issuer.published.pop("mine")
    issuer.keys["mine"] = ("RS256", issuer.keys["mine"][1])
    return issuer.token("mine", header={"kid": "first", "jwk": jwk, "jku": f"{issuer.address}/mine"})


def twice(issuer: Issuer, name: str, value: str) -> str:
    text = json.dumps(issuer.claims())
    return issuer.signed(f'{{"{name}": {value}, {text[1:]}')


def other_issuer(issuer: Issuer) -> str:
    with authorisation_server() as stranger:
        stranger.resource = issuer.resource
        return stranger.token(iss=issuer.address)


REFUSED: list[tuple[str, Callable[[Issuer], str]]] = [
    ("another audience", lambda i: i.token(aud="https://other.example/mcp")),
    ("an audience that ours begins with", lambda i: i.token(aud=i.resource[:-4])),
    ("an audience with a slash more", lambda i: i.token(aud=i.resource + "/")),
    ("no audience", lambda i: i.token(aud=None)),
    ("an empty audience", lambda i: i.token(aud=[])),
    ("an audience that is no text", lambda i: i.token(aud={"x": i.resource})),
    ("a number among audiences", lambda i: i.token(aud=[i.resource, 7])),
    ("another issuer in its claims", lambda i: i.token(iss="https://evil.example")),
    ("an issuer with a slash more", lambda i: i.token(iss=i.address + "/")),
    ("a list of issuers", lambda i: i.token(iss=[i.address])),
    ("no issuer", lambda i: i.token(iss=None)),
    ("another issuer's key", other_issuer),
    ("not yet valid", lambda i: i.token(nbf=int(time.time()) + 90)),
    ("made in the future", lambda i: i.token(iat=int(time.time()) + 90)),
    ("no end", lambda i: i.token(exp=None)),
    ("an end that is text", lambda i: i.token(exp=str(int(time.time()) + 300))),
    ("an end that is true", lambda i: i.token(exp=True)),
    ("an end without end", lambda i: i.signed(json.dumps(i.claims()).replace('"exp": ', '"exp": 1e999, "old": '))),
    ("an end that is no number", lambda i: i.signed(json.dumps(i.claims(exp=float("nan"))))),
    ("no subject", lambda i: i.token(sub=None)),
    ("an empty subject", lambda i: i.token(sub="")),
    ("a subject that is no text", lambda i: i.token(sub=7)),
    ("a subject without end", lambda i: i.token(sub="x" * 256)),
    ("bound to a key of its holder", lambda i: i.token(cnf={"jkt": "x"})),
    ("scopes that are no text", lambda i: i.token(scope=["claims:all"])),
    ("alg none, unsigned", lambda i: of_none(i, "none", "")),
    ("alg None with a signature", lambda i: of_none(i, "None", "eA")),
    ("no alg", lambda i: i.token(header={"alg": None})),
    ("an alg that is a list", lambda i: i.token(header={"alg": ["RS256"]})),
    ("HS256 with the public key as its secret", lambda i: i.with_hmac(public_pem(i))),
    ("HS256 with the key's modulus", lambda i: i.with_hmac(i.published["first"]["n"].encode())),
    ("HS256 with nothing", lambda i: i.with_hmac(b"")),
    ("another algorithm than the key's", lambda i: i.token(header={"alg": "RS512"})),
    ("an unknown key", lambda i: i.token(header={"kid": "nobody"})),
    ("no key", lambda i: i.token(header={"kid": None})),
    ("a key that is a path", lambda i: i.token(header={"kid": "../../first"})),
    ("its own key inside", own_key_inside),
    ("a type of another use", lambda i: i.token(header={"typ": "logout+jwt"})),
    ("a type that is no text", lambda i: i.token(header={"typ": 7})),
    ("something critical", lambda i: i.token(header={"crit": ["exp"], "exp": 1})),
    ("an unencoded payload", lambda i: i.token(header={"b64": False, "crit": ["b64"]})),
    ("compressed", lambda i: i.token(header={"zip": "DEF"})),
    ("changed after signing", changed_after_signing),
    ("a subject twice", lambda i: twice(i, "sub", '"root"')),
    ("an audience twice", lambda i: twice(i, "aud", '"https://other.example"')),
    ("a claim twice that nobody reads", lambda i: twice(i, "iat", "1")),
    ("an alg twice", lambda i: i.signed(json.dumps(i.claims()), header='{"alg":"none","alg":"RS256","kid":"first"}')),
    ("a name twice deep inside", lambda i: twice(i, "x", '{"a": 1, "a": 2}')),
    ("claims that are a list", lambda i: i.signed("[]")),
    ("claims that are no JSON", lambda i: i.signed("{")),
    ("claims nested without end", lambda i: i.signed("[" * 3000 + "]" * 3000)),
    ("larger than any token", lambda i: i.token(sub="jane", more="x" * 9000)),
    ("padded", lambda i: i.token() + "="),
    ("in standard base64", lambda i: i.token().replace("-", "+").replace("_", "/") + "+/"),
    ("four parts", lambda i: i.token() + ".eA"),
    ("two parts", lambda i: i.token().rpartition(".")[0]),
    ("without its signature", lambda i: i.token().rpartition(".")[0] + "."),
    ("with a newline", lambda i: i.token() + "\n"),
    ("with a NUL", lambda i: i.token() + "\0"),
    ("a lone surrogate", lambda i: "\ud800." + i.token()),
    ("nothing", lambda _: ""),
    ("dots", lambda _: ".."),
]


@pytest.mark.promise("oauth.refused")
@pytest.mark.parametrize(("name", "make"), REFUSED, ids=[name for name, _ in REFUSED])
def test_a_token_that_is_off_in_one_way_is_nobodys(issuer: Issuer, name: str, make: Callable[[Issuer], str]) -> None:
    tokens = tokens_of(issuer)

    assert tokens.principal(make(issuer)) is None
    assert tokens.principal(issuer.token()) is not None, "the good one is taken by the same door"


@pytest.mark.promise("oauth.refused")
@pytest.mark.parametrize("late", [31, 3600])
def test_an_expired_token_lapses_and_names_who_held_it(issuer: Issuer, late: int) -> None:
    with pytest.raises(Lapsed) as lapsed:
        tokens_of(issuer).principal(issuer.token(exp=int(time.time()) - late))

    assert lapsed.value.name == principal_name(issuer.address, "jane@example.org", hasher)


@pytest.mark.promise("oauth.refused")
def test_the_same_subject_of_two_issuers_is_two_callers() -> None:
    names = {principal_name(issuer, "jane", hasher) for issuer in ("https://a.example", "https://b.example")}

    assert len(names) == 2
    assert principal_name("https://a", ".example\0jane", hasher) not in names


def weak(issuer: Issuer) -> None:
    issuer.add("odd", key=private_key("RS256", 1024))


def private(issuer: Issuer) -> None:
    issuer.add("odd", d="AQAB")


ODD_KEYS: list[tuple[str, Callable[[Issuer], None]]] = [
    ("too short", weak),
    ("published with its private half", private),
    ("for encryption", lambda i: i.add("odd", use="enc")),
    ("for other operations", lambda i: i.add("odd", key_ops=["sign"])),
    ("with an algorithm that we do not take", lambda i: i.add("odd", alg="RSA-OAEP")),
    ("with a symmetric algorithm", lambda i: i.add("odd", alg="HS256")),
    ("symmetric", lambda i: i.add("odd", kty="oct", k=base64.urlsafe_b64encode(b"x" * 32).decode(), alg="HS256")),
    ("of another kind than it has numbers for", lambda i: i.add("odd", kty="EC", crv="P-256", alg="ES256")),
    ("with a broken number", lambda i: i.add("odd", n="!", alg="RS256")),
    ("without a number", lambda i: i.add("odd", n=None)),
]


@pytest.mark.promise("oauth.keys")
@pytest.mark.parametrize(("name", "publish"), ODD_KEYS, ids=[name for name, _ in ODD_KEYS])
def test_a_key_that_is_off_verifies_nothing_and_the_others_do(
    issuer: Issuer, name: str, publish: Callable[[Issuer], None]
) -> None:
    publish(issuer)
    tokens = tokens_of(issuer)

    assert tokens.principal(issuer.token("odd")) is None
    assert tokens.principal(issuer.token()) is not None


@pytest.mark.promise("oauth.keys")
def test_a_key_for_one_algorithm_is_not_used_for_another(issuer: Issuer) -> None:
    issuer.add("pss", "PS256")
    issuer.keys["pss"] = ("RS256", issuer.keys["pss"][1])

    assert tokens_of(issuer).principal(issuer.token("pss")) is None


@pytest.mark.promise("oauth.keys")
def test_keys_that_rotate_are_fetched_once_and_a_key_that_is_gone_is_gone_when_the_cache_ends(issuer: Issuer) -> None:
    clock = Clock()
    tokens = tokens_of(issuer, clock)
    assert tokens.principal(issuer.token()) is not None
    assert tokens.principal(issuer.token()) is not None
    assert issuer.fetches == 1

    issuer.add("second", "ES256")
    del issuer.published["first"]
    assert tokens.principal(issuer.token("second")) is None, "an unknown key is no reason to fetch again at once"
    assert issuer.fetches == 1
    clock.now += AGAIN_S
    assert tokens.principal(issuer.token("second")) is not None
    assert tokens.principal(issuer.token("first")) is None, "what the issuer withdrew went with the fetch"
    assert issuer.fetches == 2

    del issuer.published["second"]
    issuer.add("third")
    clock.now += FRESH_S
    assert tokens.principal(issuer.token("second")) is None
    assert issuer.fetches == 3


@pytest.mark.promise("oauth.keys")
def test_a_flood_of_unknown_keys_fetches_a_few_times_and_not_more(issuer: Issuer) -> None:
    clock = Clock()
    tokens = tokens_of(issuer, clock)
    for number in range(300):
        assert tokens.principal(issuer.token(header={"kid": f"made-up-{number}"})) is None
        clock.now += 0.5

    assert issuer.fetches == 1 + int(300 * 0.5 / AGAIN_S) - 1


FAULTS = ["hangs up", "status 500", "redirects", "too large", "no JSON", "names twice", "says nothing", "drips"]


@pytest.mark.promise("oauth.down")
@pytest.mark.parametrize("fault", FAULTS)
def test_keys_that_do_not_come_let_nobody_in_and_nobody_waits_long(issuer: Issuer, fault: str) -> None:
    clock = Clock()
    tokens = tokens_of(issuer, clock)
    issuer.fault = fault
    begun = time.monotonic()

    with pytest.raises(UnavailableError) as first:
        tokens.principal(issuer.token())

    assert time.monotonic() - begun < WHOLE_S + 2
    assert issuer.address not in str(first.value)
    with pytest.raises(UnavailableError, match="a moment ago"):
        tokens.principal(issuer.token())
    assert issuer.fetches == 1, "a server that is down is not asked by every call"
    issuer.fault = None
    clock.now += RETRY_S
    assert tokens.principal(issuer.token()) is not None


@pytest.mark.promise("oauth.down")
def test_an_issuer_that_is_down_is_done_without_while_its_keys_are_fresh_and_no_longer(issuer: Issuer) -> None:
    clock = Clock()
    tokens = tokens_of(issuer, clock)
    assert tokens.principal(issuer.token()) is not None
    issuer.fault = "hangs up"
    clock.now += AGAIN_S

    assert tokens.principal(issuer.token()) is not None
    assert tokens.principal(issuer.token(header={"kid": "new"})) is None
    clock.now += FRESH_S
    with pytest.raises(UnavailableError):
        tokens.principal(issuer.token())


KEY_SETS: list[tuple[str, str]] = [
    ('{"keys": {}}', "no key set"),
    ('{"keys": []}', "no key that can verify"),
    ('{"keys": ["x", null, 7]}', "no key that can verify"),
    ("[]", "no key set"),
    ("null", "no key set"),
]


@pytest.mark.promise("oauth.keys")
@pytest.mark.parametrize(("content", "words"), KEY_SETS)
def test_a_key_set_that_is_none_is_an_error(content: str, words: str) -> None:
    with pytest.raises(UnavailableError, match=words):
        read_keys(content.encode())


@pytest.mark.promise("oauth.keys")
def test_two_keys_of_one_id_make_the_whole_set_untrusted(issuer: Issuer) -> None:
    issuer.add("second")
    document = json.dumps({"keys": [{**jwk, "kid": "one"} for jwk in issuer.published.values()]})

    assert len(document) < MAX_BYTES
    with pytest.raises(UnavailableError, match="one key id twice"):
        read_keys(document.encode())


SETTINGS: list[tuple[str, str, str]] = [
    ("CDA_OAUTH_ISSUER", "http://issuer.example", "https"),
    ("CDA_OAUTH_ISSUER", "https://user:pw@issuer.example", "https"),
    ("CDA_OAUTH_ISSUER", "https://issuer.example?x=1", "https"),
    ("CDA_OAUTH_ISSUER", "https://issuer.example#x", "https"),
    ("CDA_OAUTH_ISSUER", "issuer.example", "https"),
    ("CDA_OAUTH_ISSUER", "https://", "https"),
    ("CDA_OAUTH_ISSUER", "https://issuer.example:port", "https"),
    ("CDA_OAUTH_RESOURCE", 'https://claims.example/"mcp', "https"),
    ("CDA_OAUTH_RESOURCE", "https://claims.example/\r\nX: y", "https"),
    ("CDA_OAUTH_JWKS", "file:///etc/passwd", "https"),
    ("CDA_OAUTH_JWKS", "http://127.0.0.1.evil.example/jwks", "https"),
    ("CDA_OAUTH_SCOPES", "claims:read", "CDA_OAUTH_SCOPES"),
    ("CDA_OAUTH_SCOPES", "claims:read=", "CDA_OAUTH_SCOPES"),
    ("CDA_OAUTH_SCOPES", "=get_claim", "CDA_OAUTH_SCOPES"),
    ("CDA_OAUTH_SCOPES", "claims:read=all,get_claim", "CDA_OAUTH_SCOPES"),
    ("CDA_OAUTH_SCOPES", "a=get_claim a=get_claim_notes", "CDA_OAUTH_SCOPES"),
    ("CDA_OAUTH_SCOPES", 'a"b=get_claim', "CDA_OAUTH_SCOPES"),
    ("CDA_OAUTH_SCOPES", " ", "CDA_OAUTH_SCOPES"),
]


@pytest.mark.promise("oauth.settings")
@pytest.mark.parametrize(("name", "value", "words"), SETTINGS)
def test_a_setting_that_is_off_is_named_and_not_repeated(issuer: Issuer, name: str, value: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as fault:
        resource_of(issuer, **{name: value})

    assert name in str(fault.value)
    assert value.strip() == "" or value not in str(fault.value)


@pytest.mark.promise("oauth.settings")
def test_three_of_the_four_settings_are_an_error_that_names_the_fourth(issuer: Issuer) -> None:
    variables = dict(issuer.variables)
    del variables["CDA_OAUTH_SCOPES"]

    with pytest.raises(UsageError, match="CDA_OAUTH_SCOPES not set"):
        OAuthResource.of(Settings(_env_file=None, **variables))  # type: ignore[call-arg,arg-type]
    assert OAuthResource.of(Settings(_env_file=None)) is None  # type: ignore[call-arg]


@pytest.mark.promise("oauth.settings")
def test_a_scope_that_names_no_tool_of_the_server_is_an_error(issuer: Issuer) -> None:
    resource = resource_of(issuer, CDA_OAUTH_SCOPES="a=get_claim,get_clam")

    with pytest.raises(UsageError, match="does not have; it has get_claim"):
        resource.require(["get_claim"])


@pytest.mark.promise("oauth.scopes")
def test_scopes_open_their_tools_and_nothing_else(issuer: Issuer) -> None:
    resource = resource_of(issuer)

    assert resource.tools(()) == frozenset()
    assert resource.tools(("openid", "claims:READ", "claims")) == frozenset()
    assert resource.tools(("rules:read", "claims:notes")) == {"get_coverage_rule", "get_claim_notes"}
    assert resource.tools(("rules:read", "claims:all")) is None
    assert Principal("x", resource.tools(())).may("get_claim") is False


@pytest.mark.promise("oauth.scopes")
def test_what_is_asked_for_is_the_scope_that_opens_least(issuer: Issuer) -> None:
    resource = resource_of(issuer)

    assert resource.wider(("openid", "rules:read"), "get_claim_notes") == "rules:read claims:notes"
    assert resource.wider((), "get_claim") == "claims:read"
    assert resource_of(issuer, CDA_OAUTH_SCOPES="a=get_claim").wider((), "get_claim_notes") is None
    assert resource_of(issuer, CDA_OAUTH_SCOPES="a=all").wider((), "get_claim_notes") == "a"
