# In a checkout mypy finds the kernels at the top level, as Python does through `__path__`.
from kernels import *
from kernels import cache as cache
from kernels import loader as loader
