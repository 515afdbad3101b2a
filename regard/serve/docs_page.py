"""The page with the documentation of the API, written from its OpenAPI description."""

import json
from collections.abc import Iterator
from html import escape
from typing import Any

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: API</title>
<link rel="stylesheet" href="/static/docs.css">
</head>
<body>
<main>
<h1>{title}: API</h1>
<p>{description} Version {version}. <a href="/openapi.json">OpenAPI file</a></p>
{routes}
</main>
</body>
</html>
"""


def write_docs(description: dict[str, Any]) -> str:
    """Return a page without scripts that lists all routes with their requests and replies."""
    info = description["info"]
    schemas = description["components"]["schemas"]
    routes = "\n".join(
        _write_route(method, path, route, schemas=schemas)
        for path, methods in description["paths"].items()
        for method, route in methods.items()
    )
    texts = {name: escape(info[name]) for name in ("title", "description", "version")}
    return PAGE.format(**texts, routes=routes)


def _write_route(method: str, path: str, route: dict[str, Any], *, schemas: dict[str, Any]) -> str:
    lines = [
        f"<section><h2><code>{escape(method.upper())} {escape(path)}</code></h2>",
        f"<p>{escape(route.get('description', ''))}</p>",
    ]
    if "requestBody" in route:
        content = route["requestBody"]["content"]
        kinds = ", ".join(map(escape, content))
        lines.append(f"<h3>Request</h3><p>{kinds}</p>")
        lines += _write_fields(_find_schema(content["application/json"]["schema"], schemas))
    reply = route["responses"].get("200", {}).get("content", {}).get("application/json", {})
    if schema := reply.get("schema"):
        lines.append("<h3>Reply</h3>")
        lines += _write_fields(_find_schema(schema.get("items", schema), schemas))
    return "\n".join([*lines, "</section>"])


def _write_fields(schema: dict[str, Any]) -> Iterator[str]:
    """Yield a table of the fields of an object."""
    required = schema.get("required", ())
    rows = [
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(_describe_type(field))}</td>"
        f"<td>{_describe_default(field, name in required)}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema.get("properties", {}).items()
    ]
    if rows:
        yield "<table><tr><th>field</th><th>type</th><th>default</th><th></th></tr>"
        yield from rows
        yield "</table>"


def _find_schema(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = schemas.get(name, schema)
    return found


def _describe_type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if "anyOf" in field:
        return " | ".join(_describe_type(one) for one in field["anyOf"])
    if "enum" in field:
        return " | ".join(map(json.dumps, field["enum"]))
    if field.get("type") == "array":
        return f"list of {_describe_type(field.get('items', {}))}"
    return str(field.get("type", "any"))


def _describe_default(field: dict[str, Any], is_required: bool) -> str:
    if is_required:
        return "required"
    return escape(json.dumps(field["default"])) if "default" in field else ""
