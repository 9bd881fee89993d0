"""Exact optima of the privacy-distortion programs, in rational arithmetic."""
