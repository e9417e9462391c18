"""``mrcr schema``: JSON Schemas of what is read and written."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from mrcr_action.config import RunConfig
from mrcr_action.config.thresholds import BUCKET, CELL, METRICS
from mrcr_action.config.values import DIGITS_AS_TEXT, GATES
from mrcr_action.result import result_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text(document: str) -> str:
    """The schema of a document (``config`` or ``result``) as indented JSON."""
    schema = config_schema() if document == "config" else {"$schema": DIALECT, **result_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def config_schema() -> dict[str, Any]:
    """The schema of a configuration file, for editors; the reader checks the same and more."""
    schema = msgspec.json.schema(RunConfig)
    body = schema["$defs"].pop("RunConfig")
    # YAML's `2: 0.99` is a number as a key, which JSON Schema can only name as text.
    for choice in body["properties"]["match_ratio_threshold"]["anyOf"]:
        if choice.get("type") == "object":
            ratio = choice.pop("additionalProperties")
            choice["properties"] = {str(n): ratio for n in range(1, 17)}
            choice["additionalProperties"] = False
            choice["minProperties"] = 1
    _thresholds(body)
    # To leave a gate out is one thing; to leave it blank is a slip.
    for key in GATES:
        gate = body["properties"][key]
        gate["anyOf"].remove({"type": "null"})
        del gate["default"]
    body["properties"]["needles"]["uniqueItems"] = True
    for choice in body["properties"]["concurrency"]["anyOf"]:
        if choice.get("type") == "array":
            choice["uniqueItems"] = True
    # The first pass is the one that the others are compared with.
    body["properties"]["passes"] |= {"uniqueItems": True, "prefixItems": [{"const": "cold"}]}
    # YAML reads digits alone as a number.
    for key, least in DIGITS_AS_TEXT.items():
        text = body["properties"][key]
        form = {word: text.pop(word) for word in ("type", "pattern")}
        text["anyOf"] = [form, {"type": "integer", "minimum": least}]
    return {"$schema": DIALECT, **body, "title": "mrcr configuration", "$defs": schema["$defs"]}


def _thresholds(body: dict[str, Any]) -> None:
    """Say which buckets and metrics there are."""
    for choice in body["properties"]["thresholds"]["anyOf"]:
        if choice.get("type") == "object":
            bound = choice.pop("additionalProperties")
            for form in bound["anyOf"]:
                if form.get("type") == "object":
                    metric = form.pop("additionalProperties")
                    form.pop("propertyNames", None)
                    form["properties"] = dict.fromkeys(METRICS, metric)
                    form["additionalProperties"] = False
                    form["minProperties"] = 1
            choice["patternProperties"] = {f"^({BUCKET}|{CELL})$": bound}
            choice["additionalProperties"] = False
            choice["minProperties"] = 1
