"""Triton kernels. Importing a module of this package needs Triton, which GPU builds bring."""
