"""Plain counterparts of what the figures show, and how colours look to colour-blind readers."""

import math

#: What dichromats see of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
SIGHTS = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}


def lab(colour, sight=None):
    """CIE Lab of a hexadecimal colour, as somebody with this sight sees it."""
    values = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    if sight is not None:
        seen = [sum(w * v for w, v in zip(row, linear, strict=True)) for row in SIGHTS[sight]]
        linear = [min(max(v, 0.0), 1.0) for v in seen]
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    x, y, z = (
        sum(w * v for w, v in zip(row, linear, strict=True)) / top
        for row, top in zip(to_xyz, white, strict=True)
    )
    f = [t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def difference(first, second, sight=None):
    """Distance of two colours in Lab; about 2 is just noticeable."""
    return math.dist(lab(first, sight), lab(second, sight))


def advanced(epsilon, releases, delta):
    """Mean plus deviation of the loss of randomised response, bounded by Hoeffding."""
    stay = 1 / (1 + math.exp(-epsilon))
    mean = releases * epsilon * (stay - (1 - stay))
    return mean + epsilon * math.sqrt(2 * releases * math.log(1 / delta))
