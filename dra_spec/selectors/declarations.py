"""The functions that selectors may call: names, overloads and their types.

Source: the CEL language definition (standard functions), cel-go extensions strings v2, sets, lists v3, optionals, two-variable
comprehensions, and the Kubernetes libraries, as k8s.io/apiserver pkg/cel/environment puts them together for 1.37.
"""

from __future__ import annotations

import functools
import re

import attrs

from dra_spec.selectors.types import Type, parse_type

# One function a line: its overloads as `id(argument types) result`. A dot before the id marks a method (the target comes first).
_TABLE = """
_?_:_               conditional(bool, A, A) A
_&&_                logical_and(bool, bool) bool
_||_                logical_or(bool, bool) bool
!_                  logical_not(bool) bool
@not_strictly_false not_strictly_false(bool) bool
_==_                equals(A, A) bool
_!=_                not_equals(A, A) bool
_+_                 add_bytes(bytes, bytes) bytes; add_double(double, double) double; add_duration_duration(duration, duration) duration;\
 add_duration_timestamp(duration, timestamp) timestamp; add_timestamp_duration(timestamp, duration) timestamp; add_int64(int, int) int;\
 add_list(list<A>, list<A>) list<A>; add_string(string, string) string; add_uint64(uint, uint) uint
_-_                 subtract_double(double, double) double; subtract_duration_duration(duration, duration) duration;\
 subtract_int64(int, int) int; subtract_timestamp_duration(timestamp, duration) timestamp;\
 subtract_timestamp_timestamp(timestamp, timestamp) duration; subtract_uint64(uint, uint) uint
_*_                 multiply_double(double, double) double; multiply_int64(int, int) int; multiply_uint64(uint, uint) uint
_/_                 divide_double(double, double) double; divide_int64(int, int) int; divide_uint64(uint, uint) uint
_%_                 modulo_int64(int, int) int; modulo_uint64(uint, uint) uint
-_                  negate_double(double) double; negate_int64(int) int
_[_]                index_list(list<A>, int) A; index_map(map<A, B>, A) B; optional_list_index_int(optional<list<V>>, int) optional<V>;\
 optional_map_index_value(optional<map<K, V>>, K) optional<V>
_[?_]               list_optindex_optional_int(list<V>, int) optional<V>;\
 optional_list_optindex_optional_int(optional<list<V>>, int) optional<V>;\
 map_optindex_optional_value(map<K, V>, K) optional<V>; optional_map_optindex_optional_value(optional<map<K, V>>, K) optional<V>
@in                 in_list(A, list<A>) bool; in_map(A, map<A, B>) bool
size                size_bytes(bytes) int; .bytes_size(bytes) int; size_list(list<A>) int; .list_size(list<A>) int;\
 size_map(map<A, B>) int; .map_size(map<A, B>) int; size_string(string) int; .string_size(string) int
type                type(A) type<A>
bool                bool_to_bool(bool) bool; string_to_bool(string) bool
bytes               bytes_to_bytes(bytes) bytes; string_to_bytes(string) bytes
double              double_to_double(double) double; int64_to_double(int) double; string_to_double(string) double;\
 uint64_to_double(uint) double
duration            duration_to_duration(duration) duration; string_to_duration(string) duration
dyn                 to_dyn(A) dyn
int                 int64_to_int64(int) int; double_to_int64(double) int; duration_to_int64(duration) int; string_to_int64(string) int;\
 timestamp_to_int64(timestamp) int; uint64_to_int64(uint) int
string              string_to_string(string) string; bool_to_string(bool) string; bytes_to_string(bytes) string;\
 double_to_string(double) string; duration_to_string(duration) string; int64_to_string(int) string;\
 timestamp_to_string(timestamp) string; uint64_to_string(uint) string; ip_to_string(ip) string; cidr_to_string(cidr) string
timestamp           timestamp_to_timestamp(timestamp) timestamp; int64_to_timestamp(int) timestamp;\
 string_to_timestamp(string) timestamp
uint                uint64_to_uint64(uint) uint; double_to_uint64(double) uint; int64_to_uint64(int) uint; string_to_uint64(string) uint
contains            .contains_string(string, string) bool
endsWith            .ends_with_string(string, string) bool
startsWith          .starts_with_string(string, string) bool
matches             matches(string, string) bool; .matches_string(string, string) bool
charAt              .string_char_at_int(string, int) string
indexOf             .list_a_index_of_int(list<A>, A) int; .string_index_of_string(string, string) int;\
 .string_index_of_string_int(string, string, int) int
lastIndexOf         .list_a_last_index_of_int(list<A>, A) int; .string_last_index_of_string(string, string) int;\
 .string_last_index_of_string_int(string, string, int) int
lowerAscii          .string_lower_ascii(string) string
upperAscii          .string_upper_ascii(string) string
replace             .string_replace_string_string(string, string, string) string;\
 .string_replace_string_string_int(string, string, string, int) string
split               .string_split_string(string, string) list<string>; .string_split_string_int(string, string, int) list<string>
substring           .string_substring_int(string, int) string; .string_substring_int_int(string, int, int) string
trim                .string_trim(string) string
format              .string_format(string, list<dyn>) string
strings.quote       strings_quote(string) string
join                .list_join(list<string>) string; .list_join_string(list<string>, string) string
find                .string_find_string(string, string) string
findAll             .string_find_all_string(string, string) list<string>; .string_find_all_string_int(string, string, int) list<string>
includes            .list_includes_dyn_dyn(dyn, dyn) bool
sets.contains       list_sets_contains_list(list<T>, list<T>) bool
sets.equivalent     list_sets_equivalent_list(list<T>, list<T>) bool
sets.intersects     list_sets_intersects_list(list<T>, list<T>) bool
slice               .list_slice(list<T>, int, int) list<T>
flatten             .list_flatten(list<list<T>>) list<T>; .list_flatten_int(list<dyn>, int) list<dyn>
lists.range         lists_range(int) list<int>
reverse             .list_reverse(list<T>) list<T>
distinct            .list_distinct(list<T>) list<T>
first               .list_first(list<V>) optional<V>
last                .list_last(list<V>) optional<V>
cel.@mapInsert      @mapInsert_map_key_value(map<K, V>, K, V) map<K, V>; @mapInsert_map_map(map<K, V>, map<K, V>) map<K, V>
optional.of         optional_of(V) optional<V>
optional.ofNonZeroValue optional_ofNonZeroValue(V) optional<V>
optional.none       optional_none() optional<V>
optional.unwrap     optional_unwrap(list<optional<V>>) list<V>
unwrapOpt           .optional_unwrapOpt(list<optional<V>>) list<V>
value               .optional_value(optional<V>) V
hasValue            .optional_hasValue(optional<V>) bool
or                  .optional_or_optional(optional<V>, optional<V>) optional<V>
orValue             .optional_orValue_value(optional<V>, V) V
quantity            string_to_quantity(string) quantity
isQuantity          is_quantity_string(string) bool
sign                quantity_sign(quantity) int
isGreaterThan       .quantity_is_greater_than(quantity, quantity) bool; .semver_is_greater_than(semver, semver) bool
isLessThan          .quantity_is_less_than(quantity, quantity) bool; .semver_is_less_than(semver, semver) bool
compareTo           .quantity_compare_to(quantity, quantity) int; .semver_compare_to(semver, semver) int
asApproximateFloat  .quantity_get_float(quantity) double
asInteger           .quantity_get_int(quantity) int
isInteger           .quantity_is_integer(quantity) bool
add                 .quantity_add(quantity, quantity) quantity; .quantity_add_int(quantity, int) quantity
sub                 .quantity_sub(quantity, quantity) quantity; .quantity_sub_int(quantity, int) quantity
semver              string_to_semver(string) semver; string_bool_to_semver(string, bool) semver
isSemver            is_semver_string(string) bool; is_semver_string_bool(string, bool) bool
major               .semver_major(semver) int
minor               .semver_minor(semver) int
patch               .semver_patch(semver) int
ip                  string_to_ip(string) ip; .cidr_ip(cidr) ip
family              .ip_family(ip) int
ip.isCanonical      ip_is_canonical(string) bool
isUnspecified       .ip_is_unspecified(ip) bool
isLoopback          .ip_is_loopback(ip) bool
isLinkLocalMulticast .ip_is_link_local_multicast(ip) bool
isLinkLocalUnicast  .ip_is_link_local_unicast(ip) bool
isGlobalUnicast     .ip_is_global_unicast(ip) bool
isIP                is_ip(string) bool
cidr                string_to_cidr(string) cidr
containsIP          .cidr_contains_ip_string(cidr, string) bool; .cidr_contains_ip_ip(cidr, ip) bool
containsCIDR        .cidr_contains_cidr_string(cidr, string) bool; .cidr_contains_cidr(cidr, cidr) bool
prefixLength        .cidr_prefix_length(cidr) int
masked              .cidr_masked(cidr) cidr
isCIDR              is_cidr(string) bool
url                 string_to_url(string) url
isURL               is_url_string(string) bool
getScheme           .url_get_scheme(url) string
getHost             .url_get_host(url) string
getHostname         .url_get_hostname(url) string
getPort             .url_get_port(url) string
getEscapedPath      .url_get_escaped_path(url) string
getQuery            .url_get_query(url) map<string, list<string>>
validate            .format-validate(format, string) optional<list<string>>
format.named        format-named(string) optional<format>
path                .authorizer_path(authorizer, string) path_check
group               .authorizer_group(authorizer, string) group_check
serviceAccount      .authorizer_serviceaccount(authorizer, string, string) authorizer
resource            .groupcheck_resource(group_check, string) resource_check
subresource         .resourcecheck_subresource(resource_check, string) resource_check
namespace           .resourcecheck_namespace(resource_check, string) resource_check
name                .resourcecheck_name(resource_check, string) resource_check
fieldSelector       .authorizer_fieldselector(resource_check, string) resource_check
labelSelector       .authorizer_labelselector(resource_check, string) resource_check
check               .pathcheck_check(path_check, string) decision; .resourcecheck_check(resource_check, string) decision
errored             .decision_errored(decision) bool
error               .decision_error(decision) string
allowed             .decision_allowed(decision) bool
reason              .decision_reason(decision) string
"""
_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE = ("int", "uint", "double", "duration")
_LONG = {"int": "int64", "uint": "uint64"}
FORMATS = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
]
_TIME_PARTS = {
    "getFullYear": "year",
    "getMonth": "month",
    "getDayOfYear": "day_of_year",
    "getDayOfMonth": "day_of_month",
    "getDate": "day_of_month_1_based",
    "getDayOfWeek": "day_of_week",
    "getHours": "hours",
    "getMinutes": "minutes",
    "getSeconds": "seconds",
    "getMilliseconds": "milliseconds",
}
_OVERLOAD = re.compile(r"(\.?)([^\s(]+)\(([^)]*)\) (\S.*)")
_COMMA = re.compile(r",\s*(?![^<]*>)")


@attrs.frozen
class Overload:
    """`params`: the type parameters that its types name."""

    id: str
    method: bool
    args: tuple[Type, ...]
    result: Type
    params: frozenset[Type]


def _parse_overload(text: str) -> Overload:
    match = _OVERLOAD.fullmatch(text.strip())
    assert match, text
    dot, ident, args, result = match.groups()
    types = tuple(parse_type(a) for a in _COMMA.split(args) if a)
    returned = parse_type(result)
    return Overload(ident, bool(dot), types, returned, frozenset(p for t in (*types, returned) for p in _params(t)))


def _params(t: Type) -> list[Type]:
    return [t] if t.kind == "param" else [p for inner in t.params for p in _params(inner)]


def _generated() -> list[str]:
    lines = []
    for operator, verb in (("<", "less"), ("<=", "less_equals"), (">", "greater"), (">=", "greater_equals")):
        same = [
            f"{verb}_{_LONG.get(t, t)}({t}, {t}) bool"
            for t in ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
        ]
        numbers = ("int", "uint", "double")
        mixed = [f"{verb}_{_LONG.get(a, a)}_{_LONG.get(b, b)}({a}, {b}) bool" for a in numbers for b in numbers if a != b]
        lines.append(f"_{operator}_ " + "; ".join(same + mixed))
    lines.append("isSorted " + "; ".join(f".list_{t}_is_sorted_bool(list<{t}>) bool" for t in _ORDERED))
    lines.append("sum " + "; ".join(f".list_{t}_sum_{t}(list<{t}>) {t}" for t in _SUMMABLE))
    for name in ("max", "min"):
        lines.append(f"{name} " + "; ".join(f".list_{t}_{name}_{t}(list<{t}>) {t}" for t in _ORDERED))
    sortable = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
    long = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
    lines.append("sort " + "; ".join(f".list_{long.get(t, t)}_sort(list<{t}>) list<{t}>" for t in sortable))
    by = "; ".join(f".list_{long.get(t, t)}_sortByAssociatedKeys(list<T>, list<{t}>) list<T>" for t in sortable)
    lines.append("@sortByAssociatedKeys " + by)
    for name, part in _TIME_PARTS.items():
        overloads = [f".timestamp_to_{part}(timestamp) int", f".timestamp_to_{part}_with_tz(timestamp, string) int"]
        if part in ("hours", "minutes", "seconds", "milliseconds"):
            overloads.append(f".duration_to_{part}(duration) int")
        lines.append(f"{name} " + "; ".join(overloads))
    lines += [f"format.{name} format.{name}() format" for name in FORMATS]
    return lines


@functools.cache
def functions() -> dict[str, tuple[Overload, ...]]:
    """All functions by name, with their overloads in the order in which the checker tries them."""
    found: dict[str, tuple[Overload, ...]] = {}
    for line in [*_TABLE.strip().splitlines(), *_generated()]:
        name, _, overloads = line.partition(" ")
        found[name] = tuple(_parse_overload(o) for o in overloads.strip().split(";"))
    return found
