"""The findings of API validation that manifests are checked for: kind -> places, `[]` for any index or key, templates as claims."""

from __future__ import annotations

import re

RULES = {
    "Invalid": """
        metadata.labels metadata.name spec spec.driver spec.nodeName spec.nodeSelector.nodeSelectorTerms
        spec.pool.generation spec.pool.name spec.pool.resourceSliceCount
        spec.deviceSelector.device spec.deviceSelector.driver spec.deviceSelector.pool
        spec.devices.config[].requests[] spec.devices.constraints[].requests[]
        spec.devices.constraints[].distinctAttribute spec.devices.constraints[].matchAttribute
        spec.devices.requests[] spec.devices.requests[].exactly.count spec.devices.requests[].exactly.deviceClassName
        spec.devices.requests[].exactly.selectors[].cel.expression spec.devices.requests[].exactly.tolerations[].value
        spec.devices.requests[].firstAvailable[].deviceClassName spec.devices.requests[].firstAvailable[].name
        spec.devices[] spec.devices[].name spec.devices[].nodeName spec.devices[].attributes
        spec.devices[].attributes[].version spec.devices[].attributes[].versions[]
        spec.devices[].bindingConditions spec.devices[].bindingConditions[]
        spec.devices[].bindingFailureConditions spec.devices[].bindingFailureConditions[]
        spec.devices[].consumesCounters[].counterSet spec.devices[].taints[].key spec.devices[].taints[].value
        spec.selectors[].cel.expression spec.sharedCounters[].counters spec.sharedCounters[].name
    """,
    "Required": """
        metadata.name spec spec.pool.name spec.selectors[].cel spec.devices.constraints[]
        spec.devices.capacity.requestPolicy.default spec.devices.capacity.requestPolicy.validRange.min
        spec.devices.requests[].exactly.deviceClassName spec.devices.requests[].firstAvailable[].deviceClassName
        spec.devices[] spec.devices[].consumesCounters[].counterSet spec.devices[].consumesCounters[].counters
        spec.sharedCounters[].counters spec.sharedCounters[].name
    """,
    "TooMany": """
        spec.config spec.selectors spec.devices spec.devices.config spec.devices.constraints spec.devices.requests
        spec.devices.requests[].firstAvailable spec.devices[].bindingConditions spec.devices[].bindingFailureConditions
        spec.devices[].consumesCounters spec.devices[].consumesCounters[].counters spec.devices[].taints
        spec.sharedCounters spec.sharedCounters[].counters
    """,
    "Forbidden": """
        spec.devices.requests[].exactly.selectors[].cel.expression spec.devices[].capacity[].requestPolicy
        spec.devices.capacity.requestPolicy
    """,
    "TooLong": """
        spec.devices.requests[].exactly.selectors[].cel.expression spec.pool.name spec.devices[].attributes
        spec.devices[].attributes[].string spec.devices[].attributes[].strings[]
        spec.devices[].attributes[].version spec.devices[].attributes[].versions[]
    """,
    "NotSupported": """
        spec.devices.requests[].exactly.allocationMode
        spec.devices.requests[].exactly.tolerations[].effect spec.devices.requests[].exactly.tolerations[].operator
    """,
    "Duplicate": """
        spec.devices.requests[] spec.devices.requests[].firstAvailable[] spec.devices[]
        spec.devices[].bindingConditions[] spec.devices[].bindingFailureConditions[] spec.devices[].consumesCounters[]
        spec.sharedCounters[]
    """,
}
_PLACES = {kind: frozenset(places.split()) for kind, places in RULES.items()}


def covered(field: str, kind: str) -> bool:
    """Whether manifests are checked for a finding."""
    place = re.sub(r"\[[^\]]*\]", "[]", field).replace("spec.spec.", "spec.", 1)
    return place in _PLACES.get(kind, ())
