# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Neutron without networks and ports."""

import json
from http.server import BaseHTTPRequestHandler


class NetworkHandler(BaseHTTPRequestHandler):
    """Answers every list of Neutron's API with an empty list."""

    def do_GET(self) -> None:
        name = self.path.partition('?')[0].rstrip('/').rpartition('/')[2]
        content = json.dumps({name.replace('-', '_') or 'versions': []}).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
