"""Channels of ours in the libraries of others; each adapter needs the extra of its name."""
