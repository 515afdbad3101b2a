"""Shared by all packages: settings, errors, files, tables, devices, logging."""
