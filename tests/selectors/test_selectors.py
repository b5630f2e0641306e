"""Selectors on devices: values, errors as values, syntax errors with their place, and what is not encoded."""

from __future__ import annotations

import pytest

from dra_spec.resources import ManifestError, Quantity, SemVer, Where
from dra_spec.selectors import (
    Environment,
    SelectorDevice,
    SelectorError,
    SelectorSyntaxError,
    admit_selector,
    compile_derived,
    compile_selector,
)

D = "gpu.example.com"
DEVICE = SelectorDevice(
    "gpu.example.com/node-a/gpu-0",
    D,
    {
        D: {"model": "A100-SXM", "index": 2, "ready": True, "version": SemVer(1, 10, 0), "uuid": "", "paths": ("a", "b")},
        "dra.net": {"ifName": "eth0"},
    },
    {D: {"memory": Quantity.parse("40Gi"), "half": Quantity.parse("0.5")}},
    allow_multiple_allocations=True,
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("device.driver == 'gpu.example.com'", True),
        (f"device.attributes['{D}'].index <= 2", True),
        (f"device.attributes['{D}'].index in [0, 4]", False),
        (f"device.attributes['{D}'].ready", True),
        (f"device.attributes['{D}']['uuid'] == ''", True),
        (f"device.attributes['{D}'].model.lowerAscii().matches('^.*a100.*$')", True),
        (f"device.attributes['{D}'].model.startsWith('A') && device.attributes['dra.net'].ifName == 'eth0'", True),
        (f"device.attributes['{D}'].version.isGreaterThan(semver('1.9.0'))", True),  # as texts it would be the other way round
        (f"device.attributes['{D}'].version.compareTo(semver('v1.10', true)) == 0", True),
        (f"device.attributes['{D}'].version.major() == 1", True),
        (f"device.capacity['{D}'].memory.compareTo(quantity('10Gi')) >= 0", True),
        (f"device.capacity['{D}'].memory == quantity('40960Mi')", True),
        (f"device.capacity['{D}'].memory.isLessThan(quantity('40Gi'))", False),
        (f"device.capacity['{D}'].half.add(quantity('500m')) == quantity('1')", True),
        (f"sign(device.capacity['{D}'].half) == 1", True),
        ("isQuantity('1Zi') || !isSemver('1')", True),
        ("device.allowMultipleAllocations == true", True),
        (" || ".join(f"device.driver == '{i}'" for i in range(60)), False),  # long, not deep
        ("'nowhere' in device.attributes", False),
        ("has(device.attributes['nowhere'].x)", False),
        (f"has(device.attributes['{D}'].index) && device.attributes['{D}'].index == 2", True),
        (f"device.attributes['{D}'].nothing == 1 || true", True),  # || and && absorb errors
        (f"true || device.attributes['{D}'].nothing == 1", True),
        (f"device.attributes['{D}'].nothing == 1 && false", False),
        (f"device.attributes['{D}'].?nothing.orValue('none') == 'none'", True),
        (f"device.attributes['{D}'].paths.exists(p, p == 'b')", True),
        (f"device.attributes['{D}'].paths.includes('b') && device.attributes['{D}'].index.includes(2)", True),
        (f"device.attributes['{D}'].ready.includes(1)", False),  # true is not 1
        (f"cel.bind(gpu, device.attributes['{D}'], gpu.index == 2 && gpu.ready)", True),
        (f"device.attributes['{D}'].index == '2'", False),
        ("device.attributes.nowhere == {}", True),
    ],
)
def test_answers(expression: str, expected: bool) -> None:
    assert compile_selector(expression).matches(DEVICE) is expected


@pytest.mark.parametrize(
    ("expression", "kind", "message"),
    [
        (f"device.attributes['{D}'].nothing == 1", "no-such-key", "no such key: nothing"),
        ("device.attributes['nowhere'].x == 1", "no-such-key", "no such key: x"),
        (f"device.attributes['{D}'].nothing == 1 || false", "no-such-key", "no such key: nothing"),
        (f"device.attributes['{D}'].index", "result-not-bool", "the result is 2, expected true or false"),
        (f"device.attributes['{D}'].version", "result-not-bool", "the result is the version 1.10.0, expected true or false"),
        (f"device.attributes['{D}'].version == '1.10.0'", "no-such-overload", "no such overload"),
        (f"device.attributes['{D}'].model.compareTo(quantity('1')) == 0", "no-such-overload", "no such overload"),
        (f"device.attributes['{D}'].index < 'x'", "no-such-overload", "no such overload"),
        (f"device.attributes['{D}'].index.exists(x, true)", "not-iterable", "only lists and maps can be iterated"),
        ("quantity('ten') == quantity('10')", "bad-quantity", "'ten' is not a quantity"),
        (f"device.capacity['{D}'].half.asInteger() == 0", "quantity-not-integer", "no exact 64 bit integer"),
        ("semver('1.0') == semver('1.0.0')", "bad-semver", "'1.0' is not a semantic version"),
        ("1 / 0 == 1", "division-by-zero", "1 / 0"),
        ("9223372036854775807 + 1 > 0", "overflow", "integer overflow"),
        ("-9223372036854775808 / -1 > 0", "overflow", "integer overflow"),
        ("-9223372036854775808 % -1 == 0", "overflow", "integer overflow"),  # as in Kubernetes, although the rest would be 0
        (f"device.attributes['{D}'].paths[5] == 'a'", "index-out-of-bounds", "index out of bounds: 5 of 2"),
        ("lists.range(2000000).size() == 1", "cost-limit", "evaluating it costs more than 1000000"),
        ("[].min() == 0", "empty-list", "min() of an empty list"),
    ],
)
def test_runtime_errors_are_values(expression: str, kind: str, message: str) -> None:
    result = compile_selector(expression).matches(DEVICE)
    assert isinstance(result, SelectorError)
    assert result.kind == kind
    assert message in result.message
    assert str(result).startswith(f"selector {expression!r} on device gpu.example.com/node-a/gpu-0: ")


@pytest.mark.parametrize(
    ("expression", "line", "column", "kind", "message"),
    [
        ("device.driver ==", 1, 17, "syntax", "Syntax error: found the end of the expression, expected a value"),
        (
            "true &&\n  device.drivr == 'x'",
            2,
            9,
            "undefined-field",
            "device has no field 'drivr', expected one of driver, attributes, capacity, allowMultipleAllocations",
        ),
        (f"device.capacity['{D}'].memory >= quantity('1Gi')", 1, 43, "no-matching-overload", "'_>=_' cannot take"),
        ("device.driver == 3", 1, 15, "no-matching-overload", "'_==_' cannot take (string, int)"),
        ("device.driver.lowercase() == 'x'", 1, 24, "undeclared-reference", "'lowercase' is not known"),
        ("math.greatest(1, 2) == 2", 1, 1, "undeclared-reference", "'math' is not known"),
        ("'a' + 'b'", 1, 1, "wrong-output-type", "the expression gives string, expected bool"),
        ("", 1, 1, "syntax", "Syntax error"),
        ("has(device)", 1, 5, "bad-has-argument", "has() needs a field"),
        ("[1].all(1, true)", 1, 9, "bad-macro-variable", "expected a variable name"),
        ("[1, 'a'] == []", 1, 5, "type-mismatch", "expected int, found string"),
        ("device.driver.matches('[')", 1, 23, "bad-literal-argument", "is no regular expression"),
        ("uint(-1) == 1u", 1, 5, "program-instantiation", "unsigned integer overflow"),
        ("(" * 300 + "true" + ")" * 300, 1, 251, "syntax", "nested more than 250 deep"),
    ],
)
def test_syntax_and_type_errors_have_a_place(expression: str, line: int, column: int, kind: str, message: str) -> None:
    with pytest.raises(SelectorSyntaxError) as error:
        compile_selector(expression)
    text = str(error.value)
    assert text.startswith(f"CEL line {line}, column {column}: ")
    assert message in text
    assert error.value.kind == kind
    shown, caret = text.splitlines()[1:]
    assert shown == ("  " + (expression.splitlines() or [""])[line - 1]).rstrip() or shown.strip() == ""
    assert caret == " " * (column + 1) + "^"


def test_the_place_in_the_file_counts_the_lines_of_a_block_scalar() -> None:
    with pytest.raises(ManifestError) as error:
        compile_selector("true &&\n&", Where("m.yaml", 10, 5, "spec.selectors[0].cel.expression", block=True))
    assert str(error.value).splitlines()[0].startswith("m.yaml:12: spec.selectors[0].cel.expression: CEL line 2, column 1: ")
    assert error.value.problems[0].code == "DRA130"


@pytest.mark.parametrize(
    "expression",
    [
        "sets.contains([1, 2], [1]) && sets.equivalent([1], [1, 1]) && !sets.intersects([1], [2])",
        "device.driver.find('g.u') == 'gpu' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "![3, 1].isSorted() && [3, 1].sum() == 4 && [1, 2, 1].lastIndexOf(1) == 2 && [3, 1].sort() == [1, 3]",
        "[1, 2].all(i, v, i < v) && [1, 2].transformList(i, v, i + v) == [1, 3] && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "ip('192.0.2.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isIP('::ffff:1.2.3.4')",
        "url('https://a.b:80/c?x=1#f').getHostname() == 'a.b' && url('/p?q=1').getQuery() == {'q': ['1']}",
        "!format.dns1123Label().validate('ok').hasValue() && format.named('uuid').value().validate('x').hasValue()",
        f"device.capacity['{D}'].memory.isInteger() && device.capacity['{D}'].memory.asInteger() == 42949672960",
        f"device.capacity['{D}'].half.asApproximateFloat() == 0.5 && device.capacity['{D}'].half.sub(1) == quantity('-500m')",
        "device.attributes[?'nowhere'].hasValue()",  # an absent domain is an empty map, so there is a value
        f"!device.attributes['{D}'][?'nothing'].hasValue() && [?optional.none(), 2] == [2]",
        f"device.attributes['{D}'].?index.optMap(x, x + 1).orValue(0) == 3",
        "device.attributes.exists(device, device == 'dra.net')",
        "has(device.driver) && 1 < 1.5 && [1].includes(dyn(1.0))",
        "cel.bind(x, 1 / 0, true)",  # a name that is not used is not evaluated
        "duration('90m').getHours() == 1 && timestamp('2024-02-29T12:00:00Z').getDayOfYear() == 59",
        "'%s has %d'.format(['a', 2]) == 'a has 2' && 'abc'.substring(1, 2) == 'b'",
        "device.driver == '' " + "+ 'a'" * 60 + " || true",
    ],
)
def test_libraries(expression: str) -> None:
    assert compile_selector(expression).matches(DEVICE) is True


def test_the_api_server_refuses_what_may_cost_too_much() -> None:
    each = f"device.attributes['{D}'].paths"
    expression = f"{each}.all(a, {each}.all(b, {each}.all(c, a + b == c)))"
    assert compile_selector(expression).max_cost > 1_000_000
    with pytest.raises(SelectorSyntaxError, match="may cost") as error:
        admit_selector(expression)
    assert error.value.kind == "cost-limit"
    assert admit_selector(f"device.attributes['{D}'].model == 'a'").max_cost == 5
    with pytest.raises(SelectorSyntaxError, match="longer than 10240 bytes"):
        admit_selector("true" + " " * 10_240)


def test_new_expressions_follow_the_gates() -> None:
    new = Environment(stored=False, consumable=False, list_types=False)
    with pytest.raises(SelectorSyntaxError, match="no field 'allowMultipleAllocations'"):
        compile_selector("device.allowMultipleAllocations", environment=new)
    with pytest.raises(SelectorSyntaxError, match="'includes' is not known"):
        compile_selector(f"device.attributes['{D}'].paths.includes('a')", environment=new)
    with pytest.raises(SelectorSyntaxError, match="cannot be iterated"):
        compile_selector(f"device.attributes['{D}'].paths.exists(p, true)", environment=new)
    assert compile_selector(f"device.attributes['{D}'].index == 2", environment=new).matches(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"device.attributes['{D}'].index + 1", 3),
        (f"device.attributes['{D}'].paths", ("a", "b")),
        ("[]", ()),
        ("semver('1.2.3')", SemVer(1, 2, 3)),
        ("dyn(null)", "unsupported-type"),
        ("[dyn(1), dyn('a')]", "list-element-type"),
    ],
)
def test_derived_attributes(expression: str, value: object) -> None:
    found = compile_derived(expression).value(DEVICE)
    assert (found.kind if isinstance(found, SelectorError) else found) == value


def test_names_without_a_domain_belong_to_the_driver() -> None:
    from dra_spec.resources import AttributeValue, Capacity, Device

    device = Device(
        name="d",
        attributes={"a": AttributeValue("int", 1), "x.org/a": AttributeValue("int", 2), "v": AttributeValue("version", "1.2.3")},
        capacity={"m": Capacity(value=Quantity.of(5))},
    )
    view = SelectorDevice.of(D, "pool", device)
    expression = f"device.attributes['{D}'].a == 1 && device.attributes['x.org'].a == 2 && device.capacity['{D}'].m == quantity('5')"
    assert compile_selector(expression).matches(view) is True
    assert view.ambiguous == ()
    twice = SelectorDevice.of(D, "pool", Device(name="d", attributes={f"{D}/a": AttributeValue("int", 2), "a": AttributeValue("int", 1)}))
    assert (twice.attributes[D]["a"], twice.ambiguous) == (2, (f"{D}/a",))
