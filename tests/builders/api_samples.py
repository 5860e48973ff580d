# SPDX-License-Identifier: Apache-2.0
"""Recorded calls of the API: requests and answers.

Values that differ from run to run (ids, times, host names) become placeholders. Equal
values become equal placeholders, so that samples can be compared.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cyborg_lite.api import openapi
from cyborg_lite.api.microversion import MAXIMUM
from cyborg_lite.api.openapi.routes import list_routes
from cyborg_lite.version import VERSION
from devstack.launcher.rest import Answer
from tests.servers.keystone_cloud import KeystoneCloud
from tests.servers.stack import ADMIN

FOLDER: Final = Path(openapi.__file__).parent / 'samples'

_ROUTES: Final = {route.operation_id: route for route in list_routes()}
_ENDPOINT: Final = 'http://controller:6666'
_TIME: Final = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00')
_DURATION: Final = re.compile(r'"duration": [0-9.e-]+')
_SECONDS: Final = re.compile(r'"(age|due_in|usage_age)": -?[0-9.e-]+')
_HOURS: Final = re.compile(r'"unit_hours": [0-9.e-]+')
_DIGEST: Final = re.compile(r'\b[0-9a-f]{128}\b')
_UUID: Final = re.compile(r'\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b')
_ID: Final = re.compile(r'\b[0-9a-f]{32}\b')

Sample = dict[str, Any]  # JSON


class Recorder:
    """Client of a cloud that records the last call of each operation."""

    def __init__(self, cloud: KeystoneCloud) -> None:
        self.samples: dict[str, Sample] = {}
        self._cloud = cloud
        self._names: dict[str, str] = {}

    # Any: a body is JSON.
    def ask(
        self,
        operation: str,
        path: str,
        body: Any = None,
        *,
        persona: Mapping[str, str] = ADMIN,
    ) -> Any:
        """Send a request and return the JSON body of the answer."""
        route = _ROUTES[operation]
        version = route.until or MAXIMUM
        version_header = {'OpenStack-API-Version': f'accelerator {version}'}
        answer = self._cloud.api({**persona, **version_header}).ask(
            route.method, path, body
        )
        assert answer.status < 300, answer.body
        has_location = version == MAXIMUM and answer.status in (201, 202)
        assert bool(answer.location) is has_location, (operation, answer)
        if has_location:
            self._check_location(answer)
        tokens = ['X-Auth-Token']
        if 'X-Service-Roles' in persona:
            tokens.append('X-Service-Token')
        self.samples[operation] = {
            'request': {
                'method': route.method,
                'path': path,
                'headers': {
                    **dict.fromkeys(tokens, '...'),
                    **version_header,
                },
                **({} if body is None else {'body': body}),
            },
            'answer': {
                'status': answer.status,
                **({} if answer.body is None else {'body': answer.body}),
            },
        }
        return answer.body

    def _check_location(self, answer: Answer) -> None:
        """Check that ``Location`` leads to the created objects, or to the operation."""
        version_header = {'OpenStack-API-Version': f'accelerator {MAXIMUM}'}
        path = f'/v2{answer.location.partition("/v2")[2]}'
        located = self._cloud.api({**ADMIN, **version_header}).ask('GET', path)
        assert located.status == 200, located.body
        uuids = set(_UUID.findall(json.dumps(answer.body)))
        assert not uuids or uuids & set(_UUID.findall(json.dumps(located.body)))

    def format_samples(self) -> dict[str, str]:
        """Return the text of each sample, by operation."""
        return {name: self._text(sample) for name, sample in self.samples.items()}

    def _text(self, sample: Sample) -> str:
        text = json.dumps(sample, indent=2, ensure_ascii=False)
        text = text.replace(f'http://127.0.0.1:{self._cloud.port}', _ENDPOINT)
        text = text.replace(self._cloud.host, 'compute-1')
        text = text.replace(f'"version": "{VERSION}"', '"version": "1.2.3"')
        text = _TIME.sub('2026-01-02T03:04:05.678901+00:00', text)
        text = _DURATION.sub('"duration": 0.25', text)
        text = _SECONDS.sub(r'"\1": 0.25', text)
        text = _HOURS.sub('"unit_hours": 0.75', text)
        text = _DIGEST.sub('c' * 128, text)
        text = _UUID.sub(lambda match: self._uuid(match[0]), text)
        return _ID.sub(lambda match: self._id(match[0]), text) + '\n'

    def _uuid(self, original: str) -> str:
        number = len(self._names) + 1
        placeholder = f'{number:08x}-0000-4000-8000-{number:012x}'
        return self._names.setdefault(original, placeholder)

    def _id(self, original: str) -> str:
        return self._names.setdefault(original, f'{len(self._names) + 1:032x}')
