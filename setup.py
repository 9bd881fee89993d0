"""The packages of the wheel: all folders of fastpriv, and kernels as fastpriv.kernels.

Compiled kernels that stand in their folder (``tools/compiled_wheel.py``) make a platform wheel.
"""

from pathlib import Path

from setuptools import Distribution, find_packages, setup


class Package(Distribution):
    """A distribution that is bound to a platform if kernels are compiled."""

    def has_ext_modules(self):
        """Whether the wheel is tagged for this Python and platform."""
        return any(Path("kernels").glob("compiled_*"))


setup(
    packages=[*find_packages(include=["fastpriv", "fastpriv.*"]), "fastpriv.kernels"],
    package_dir={"fastpriv.kernels": "kernels"},
    distclass=Package,
)
