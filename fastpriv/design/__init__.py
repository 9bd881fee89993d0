"""Trade-offs between privacy and distortion."""
