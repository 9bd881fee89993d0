"""The papers' demonstrations, computed."""
