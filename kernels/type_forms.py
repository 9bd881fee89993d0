"""Exchangeable distributions as homogeneous polynomials in type counts."""

import numpy as np

from .declare import Ints, Vector, kernel


@kernel()
def multiply_linear(poly: Vector, form: Vector, strides: Ints, out: Vector) -> None:
    """Multiply a polynomial by a linear form: out = form[0] poly + sum_y form[y] z_y poly.

    Polynomials are homogeneous in k variables and stored flat by the exponents of all but the
    first, so multiplying by z_y is a shift by ``strides[y - 1]``. ``out`` may be ``poly``.
    """
    size = poly.shape[0]
    k = form.shape[0]
    for j in range(size - 1, -1, -1):
        value = form[0] * poly[j]
        for y in range(1, k):
            shift = strides[y - 1]
            if j >= shift:
                value += form[y] * poly[j - shift]
        out[j] = value


@kernel()
def substitute_pair(
    coefficients: Vector, first: Vector, second: Vector, degree: int, strides: Ints, size: int
) -> Vector:
    """Expand sum_t coefficients[t] second^t first^(degree-t), first and second linear forms.

    Horner's rule in ``second`` with the powers of ``first`` built alongside: O(degree) products
    of a polynomial by a linear form, and only sums of positive terms when all inputs are.
    """
    poly = np.zeros(size)
    power = np.zeros(size)
    power[0] = 1.0
    k = first.shape[0]
    poly[0] = coefficients[degree]
    for t in range(degree - 1, -1, -1):
        if k == 2:
            # One variable: the products touch only as many entries as the degree has reached,
            # and run downwards so that they can be done in place.
            top = degree - t
            for j in range(top, 0, -1):
                power[j] = first[0] * power[j] + first[1] * power[j - 1]
                poly[j] = second[0] * poly[j] + second[1] * poly[j - 1]
            power[0] *= first[0]
            poly[0] *= second[0]
            weight = coefficients[t]
            for j in range(top + 1):
                poly[j] += weight * power[j]
        else:
            multiply_linear(power, first, strides, power)
            multiply_linear(poly, second, strides, poly)
            for j in range(size):
                poly[j] += coefficients[t] * power[j]
    return poly
