"""The packages of the wheel: all folders of fastpriv, and kernels as fastpriv.kernels."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["fastpriv", "fastpriv.*"]), "fastpriv.kernels"],
    package_dir={"fastpriv.kernels": "kernels"},
)
