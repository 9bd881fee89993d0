"""Privacy measures: one number per notion, each a formula over a channel's primitives."""
