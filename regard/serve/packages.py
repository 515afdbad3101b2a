"""Check of the optional packages of the server."""

from importlib import import_module

from regard.core.errors import ConfigError

PACKAGES = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")
"""Import names of the packages of the extra `serve`."""


def check_packages(command: str = "serve") -> None:
    """Raise `ConfigError` if a package that the server needs is missing."""
    for name in PACKAGES:
        try:
            import_module(name)
        except ImportError as error:
            raise ConfigError(
                f"`regard {command}` needs the package {name} ({error}). Install it: "
                "`pip install 'regard[serve]'`."
            ) from None
