"""Selectors on devices: values, errors as values, syntax errors with their place, and what is not encoded."""

from __future__ import annotations

import pytest

from dra_spec.resources import ManifestError, Quantity, SemVer, Where
from dra_spec.selectors import SelectorDevice, SelectorError, SelectorSyntaxError, UnsupportedFeature, compile_selector

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
    ("expression", "message"),
    [
        (f"device.attributes['{D}'].nothing == 1", 'Key not found in map : "nothing"'),
        ("device.attributes['nowhere'].x == 1", 'Key not found in map : "x"'),
        (f"device.attributes['{D}'].nothing == 1 || false", 'Key not found in map : "nothing"'),
        (f"device.attributes['{D}'].index", "the result is 2, expected true or false"),
        (f"device.attributes['{D}'].version", "the result is 'the version 1.10.0', expected true or false"),
        (f"device.attributes['{D}'].version == '1.10.0'", "no such overload"),
        (f"device.attributes['{D}'].model.compareTo(quantity('1')) == 0", "no such overload"),
        (f"device.attributes['{D}'].index < 'x'", "No matching overloads found"),
        ("quantity('ten') == quantity('10')", "'ten' is not a quantity"),
        ("1 / 0 == 1", "divide by zero"),
    ],
)
def test_runtime_errors_are_values(expression: str, message: str) -> None:
    result = compile_selector(expression).matches(DEVICE)
    assert isinstance(result, SelectorError)
    assert message in result.message
    assert str(result).startswith(f"selector {expression!r} on device gpu.example.com/node-a/gpu-0: ")


@pytest.mark.parametrize(
    ("expression", "line", "column", "message"),
    [
        ("device.driver ==", 1, 17, "Syntax error: mismatched input '<EOF>'"),
        (
            "true &&\n  device.drivr == 'x'",
            2,
            9,
            "device has no field 'drivr', expected one of driver, attributes, capacity, allowMultipleAllocations",
        ),
        (f"device.capacity['{D}'].memory >= quantity('1Gi')", 1, 43, "no matching overload for '_>=_'"),
        ("device.driver == 3", 1, 15, "no matching overload for '_==_'"),
        ("device.driver.lowercase() == 'x'", 1, 24, "'lowercase' is not known"),
        ("math.greatest(1, 2) == 2", 1, 1, "'math' is not known"),
        ("'a' + 'b'", 1, 1, "the expression gives string, expected bool"),
        ("", 1, 1, "Syntax error"),
        (f"device.attributes['{D}'].version.dra_canonical == ''", 1, 1, "there is no field 'dra_canonical'"),
    ],
)
def test_syntax_and_type_errors_have_a_place(expression: str, line: int, column: int, message: str) -> None:
    with pytest.raises(SelectorSyntaxError) as error:
        compile_selector(expression)
    text = str(error.value)
    assert text.startswith(f"CEL line {line}, column {column}: ")
    assert message in text
    shown, caret = text.splitlines()[1:]
    assert shown == ("  " + (expression.splitlines() or [""])[line - 1]).rstrip() or shown.strip() == ""
    assert caret == " " * (column + 1) + "^"


def test_the_place_in_the_file_counts_the_lines_of_a_block_scalar() -> None:
    with pytest.raises(ManifestError) as error:
        compile_selector("true &&\n&", Where("m.yaml", 10, 5, "spec.selectors[0].cel.expression", block=True))
    assert str(error.value).splitlines()[0].startswith("m.yaml:12: spec.selectors[0].cel.expression: CEL line 2, column 1: ")
    assert error.value.problems[0].code == "DRA130"


@pytest.mark.parametrize(
    ("expression", "feature"),
    [
        ("sets.contains([1], [1])", "'sets'"),
        ("device.driver.find('g') == 'g'", "'find'"),
        ("[3, 1].isSorted()", "'isSorted'"),
        ("[1, 2].indexOf(2) == 1", "'indexOf'"),
        ("[1, 2].all(i, v, i < v)", "'all'"),
        ("ip('192.0.2.1').family() == 4", "'family'"),
        (f"device.capacity['{D}'].memory.isInteger()", "'isInteger'"),
        ("device.attributes[?'x'].hasValue()", "an optional look-up of a domain"),
        ("device.attributes.exists(device, device == 'x')", "a CEL variable that is called 'device'"),
        ("has(device.driver)", "has(device. ...)"),
        ("1 < 1.5", "an int with a double"),
        ("[1].includes(optional.of(1))", "optional values"),  # would end the process in the evaluator
        ("device.driver == '' " + "+ 'a'" * 60, "nested very deeply"),
    ],
)
def test_what_is_not_encoded_says_so(expression: str, feature: str) -> None:
    with pytest.raises(UnsupportedFeature, match=feature.replace("(", r"\(").replace(")", r"\)").replace(".", r"\.")):
        compile_selector(expression)


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
