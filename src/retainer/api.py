"""The API: every resource of it, and its operations by path and method."""

from retainer.batches import batches
from retainer.events import deliveries, events, webhooks
from retainer.identity.keys import me
from retainer.identity.people import users
from retainer.kernel.routes import Routes
from retainer.resources import OF_AREAS

RESOURCES = [
    *OF_AREAS,
    *(users.api, events.api, webhooks.api),
    *(deliveries.tests, deliveries.again, deliveries.of_webhook, batches.api, me.api),
]
"""Every resource of the API, in the order of the reference."""

ROUTES = Routes(RESOURCES)
"""The operations by path and method, shared by all applications of a process."""
