"""Figures of given data: the style of all figures, and what objects that draw themselves need."""
