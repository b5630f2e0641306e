"""Short manifests for the tests of reading."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_spec.resources import ManifestError, load_text

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: one
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
"""


@pytest.fixture
def messages() -> Callable[[str], list[str]]:
    """All problems of a text, as they are printed."""

    def read(text: str) -> list[str]:
        with pytest.raises(ManifestError) as error:
            load_text(text, file="m.yaml")
        return [str(p) for p in error.value.problems]

    return read


@pytest.fixture
def claim() -> str:
    return CLAIM
