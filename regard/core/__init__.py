"""Utilities of all packages: settings, errors, files, tables, devices, logging."""
