"""The reference for integrators at /docs: a guide, and a page for each resource, made from the declarations."""
