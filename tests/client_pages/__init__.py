"""Tests of the pages of client links."""
