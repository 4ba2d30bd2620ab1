"""Tests of a Citus cluster, which `make cluster` runs."""
