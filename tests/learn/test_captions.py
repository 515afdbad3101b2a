"""Captioners learn to write, exactly, what scenes show, and look at what they name."""

import pytest

pytestmark = pytest.mark.learn
