"""The one number that rounding errors are counted in."""

#: Unit roundoff of a double: the relative error of one operation.
ULP = 2.0**-53
