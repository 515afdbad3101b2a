"""The OpenAPI file describes the server: schemathesis sends requests that it allows and forbids."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def description(live):
    return schemathesis.openapi.from_url(f"{live.url}/openapi.json")


def send(description, num):
    """Send requests to every route."""
    for result in description.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=num,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def check(case):
            case.call_and_validate(checks=CHECKS)

        check()


@pytest.mark.parametrize("num", [3, pytest.param(200, marks=pytest.mark.faults)])
def test_replies_are_those_of_the_description(description, num):
    send(description, num)


def test_every_route_is_described(description, client):
    paths = {result.ok().path for result in description.get_all_operations()}
    assert {"/translate", "/v1/predict", "/v1/embeddings", "/healthz", "/metrics"} <= paths
    assert {"/v1/trainings", "/v1/trainings/{name}"} <= paths
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["PredictRequest"]["required"] == ["sources"]
