"""What a witness says, read off a full matrix entry by entry."""


def differ(x, other):
    """Rows in which two databases differ."""
    return [i for i, (a, b) in enumerate(zip(x, other, strict=True)) if a != b]


def ruling_out(matrix):
    """Outputs that some database can cause and another cannot."""
    columns = range(len(matrix[0]))
    return [y for y in columns if {row[y] > 0 for row in matrix} == {True, False}]
