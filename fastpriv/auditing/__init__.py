"""How private a mechanism is, in every notion at once and in words."""
