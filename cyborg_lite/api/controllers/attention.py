# SPDX-License-Identifier: Apache-2.0
"""Everything that waits for an operator."""

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.microversion import V2_7
from cyborg_lite.api.views.operations import AttentionList
from cyborg_lite.model.attention import AttentionKind


class AttentionCollection(Resource):
    """``/v2/attention``"""

    @expose()
    @requires('cyborg:attention:get_all')
    @since(V2_7)
    @accepts(arguments=('kind', 'hostname'), words={'kind': AttentionKind})
    def get(self, call: Call) -> AttentionList:
        """List what waits for an operator, the most severe kinds first.

        Each item has its kind, the time since which it waits, its object, the reason,
        and the command with which to begin. The list has at most 1,000 items of a kind.
        """
        kinds, hostname = call.words.get('kind'), call.arguments.get('hostname')
        return AttentionList(
            attention=[
                item
                for item in self.conductor.list_attention(call.caller)
                if (kinds is None or item.kind in kinds)
                and hostname in (None, item.hostname)
            ]
        )
