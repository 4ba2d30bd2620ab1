"""The data model: every table of the product, one module for each area. Nothing but declarations stands here."""

from retainer.schema import billing, crm, identity, requests, rollups, sites, support, work
from retainer.store.tables import metadata

TAG_LINKS = {
    crm.clients: crm.clients_tags,
    crm.external_contacts: crm.external_contacts_tags,
    work.projects: work.projects_tags,
    work.tasks: work.tasks_tags,
    support.tickets: support.tickets_tags,
    sites.sites: sites.sites_tags,
}
"""The tables whose rows carry tags, each with the table that says which."""

__all__ = ["TAG_LINKS", "billing", "crm", "identity", "metadata", "requests", "rollups", "sites", "support", "work"]
