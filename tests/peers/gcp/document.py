"""Google's discovery document of Compute Engine as the law of this peer: which methods there are, and what their requests and answers
may say. Nothing in here knows what a method does.
"""

import json
import pathlib
import re
import urllib.parse

import googleapiclient

PLACE = pathlib.Path(googleapiclient.__file__).parent / "discovery_cache/documents/compute.v1.json"
BASE = "/compute/v1/"
# What Google's own clients send with every request, and the document does not list; that for Rust, `$alt` and the date of the
# interface that it was made from.
SYSTEM = {"$alt": r"json(;enum-encoding=int)?", "$apiVersion": r"\d{4}-\d{2}-\d{2}", "$prettyPrint": "true|false|0|1"}
WHOLE = {"int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1)}
LONG = {"int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1)}


class Violation(Exception):
    """What is said is not what the document allows."""

    def __init__(self, message, reason="invalid", code=400):
        super().__init__(message)
        self.message, self.reason, self.code = message, reason, code


class Method:
    def __init__(self, told):
        self.id = told["id"].removeprefix("compute.")
        self.http, self.path = told["httpMethod"], told.get("flatPath", told["path"])
        self.parameters = told.get("parameters", {})
        self.request = told.get("request", {}).get("$ref")
        self.response = told.get("response", {}).get("$ref")
        self.scopes = set(told.get("scopes", []))
        self.names = re.findall(r"\{([^}]*)\}", self.path)
        # The fields that a filter may name, where it answers a list.
        self.known = set()


def without_words(told):
    """Without the descriptions, which are most of it."""
    if isinstance(told, dict):
        left = {key: without_words(value) for key, value in told.items() if key not in ("enumDescriptions", "enumDeprecated")}
        if isinstance(left.get("description"), str):
            del left["description"]
        return left
    return [without_words(value) for value in told] if isinstance(told, list) else told


class Document:
    def __init__(self):
        told = without_words(json.loads(PLACE.read_text()))
        self.schemas, self.common = told["schemas"], told["parameters"]
        self.methods, self.tree = {}, {}
        self.learn(told)
        for method in self.methods.values():
            method.known = self.fields(method)

    def fields(self, method):
        """What those have that a list of this method is of."""
        answer = self.schemas.get(method.response, {}).get("properties", {})
        items = answer.get("items", {})
        scoped = self.schemas.get(items.get("additionalProperties", {}).get("$ref"), {}).get("properties", {})
        lists = [items, *scoped.values()]
        of = next((one["items"]["$ref"] for one in lists if "$ref" in one.get("items", {})), None)
        return set(self.schemas.get(of, {}).get("properties", {}))

    def learn(self, told):
        for one in told.get("methods", {}).values():
            method = Method(one)
            self.methods[method.id] = method
            node = self.tree
            for segment in method.path.split("/"):
                node = node.setdefault("{}" if segment.startswith("{") else segment, {})
            node[method.http, None] = method
        for inner in told.get("resources", {}).values():
            self.learn(inner)

    def find(self, http, path):
        """The method that is asked for, and its path's parameters as they stand there."""
        if not path.startswith(BASE):
            raise Violation(f"The requested URL {path} was not found on this server.", "notFound", 404)
        segments = [urllib.parse.unquote(segment) for segment in path[len(BASE) :].split("/")]

        def walk(node, at, taken):
            if at == len(segments):
                return (node[http, None], taken) if (http, None) in node else None
            literal = node.get(segments[at])
            found = walk(literal, at + 1, taken) if literal else None
            if found is None and "{}" in node:
                found = walk(node["{}"], at + 1, [*taken, segments[at]])
            return found

        found = walk(self.tree, 0, [])
        if found is None:
            raise Violation(f"The requested URL {http} {path} was not found on this server.", "notFound", 404)
        return found[0], dict(zip(found[0].names, found[1]))

    def check_path(self, method, parameters):
        for name, value in parameters.items():
            pattern = method.parameters.get(name, {}).get("pattern")
            if pattern and not re.fullmatch(pattern, value):
                words = f"Invalid value '{value}'. Values must match the following regular expression: '{pattern}'"
                raise Violation(words, "invalidParameter")

    def check_query(self, method, pairs):
        """What the query says, each value of its type."""
        said = {}
        for name, value in pairs:
            spec = method.parameters.get(name, {})
            if spec.get("location") != "query":
                spec = self.common.get(name)
            if name in SYSTEM:
                parameter(name, {"pattern": SYSTEM[name]}, value)
                continue
            if spec is None:
                words = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
                raise Violation(words, "badRequest")
            value = parameter(name, spec, value)
            if spec.get("repeated"):
                said.setdefault(name, []).append(value)
            elif name in said:
                raise Violation(f"Parameter '{name}' is given twice.", "invalidParameter")
            else:
                said[name] = value
        for name, spec in method.parameters.items():
            if spec.get("required") and spec["location"] == "query" and name not in said:
                raise Violation(f"Required parameter: {name}", "required")
        return said

    def check_body(self, method, body):
        """What the body says; it must be empty where the method takes none."""
        if method.request is None:
            # Google's own client for Rust sends an empty object where there is nothing to say.
            if body.strip() not in ("", "{}"):
                raise Violation(f"The request body of {method.id} must be empty.", "badRequest")
            return None
        try:
            said = json.loads(body)
        except ValueError as error:
            raise Violation(f"Invalid JSON payload received. {error}", "parseError") from error
        self.check(self.schemas[method.request], said, method.request, answer=False)
        return said

    def check_answer(self, method, said):
        self.check(self.schemas[method.response], said, method.response, answer=True)

    def check(self, schema, value, where, answer):
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"]]
        kind = schema.get("type", "any")
        if kind == "object":
            expect(isinstance(value, dict), where, "an object", value)
            known, others = schema.get("properties", {}), schema.get("additionalProperties")
            for key, inner in value.items():
                expect(key in known or others is not None, where, f"no field {key!r}", inner)
                self.check(known.get(key, others), inner, f"{where}.{key}", answer)
        elif kind == "array":
            expect(isinstance(value, list), where, "an array", value)
            for at, inner in enumerate(value):
                self.check(schema["items"], inner, f"{where}[{at}]", answer)
        elif kind != "any":
            scalar(schema, kind, value, where, answer)


def expect(holds, where, what, value):
    if not holds:
        raise Violation(f"Invalid value at '{where}': {what} is expected, and {json.dumps(value)[:80]} was said", "invalid")


def scalar(schema, kind, value, where, answer):
    form = schema.get("format")
    if kind == "string" and form in LONG:
        # Google writes long numbers as strings, and reads them both ways.
        digits = isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value)
        digits = digits or (not answer and isinstance(value, int) and not isinstance(value, bool))
        expect(digits and within(int(value), LONG[form]), where, form, value)
    elif kind == "string":
        expect(isinstance(value, str), where, "a string", value)
        # Google writes bytes in the alphabet for addresses, and its own client for Rust reads no other.
        expect(form != "byte" or not answer or re.fullmatch(r"[-_A-Za-z0-9]*=*", value), where, "base64url", value)
        expect("enum" not in schema or value in schema["enum"], where, f"one of {schema.get('enum')}", value)
        # Patterns are of names that requests choose; an answer may name what was there before them.
        expect(answer or "pattern" not in schema or re.fullmatch(schema["pattern"], value), where, schema.get("pattern"), value)
    elif kind == "boolean":
        expect(isinstance(value, bool), where, "true or false", value)
    elif kind == "integer":
        whole = isinstance(value, int) and not isinstance(value, bool)
        expect(whole and within(value, WHOLE.get(form, (-(2**63), 2**63))), where, form or "a whole number", value)
    elif kind == "number":
        expect(isinstance(value, (int, float)) and not isinstance(value, bool), where, "a number", value)


def within(value, bounds):
    return bounds[0] <= value <= bounds[1]


def parameter(name, spec, value):
    """A query's value, of its type."""

    def must(holds, what):
        if not holds:
            raise Violation(f"Invalid value for parameter '{name}': '{value}' is not {what}.", "invalidParameter")

    kind, form = spec.get("type"), spec.get("format")
    if kind == "boolean":
        must(value in ("true", "false"), "true or false")
        return value == "true"
    if kind == "integer" or form in LONG:
        must(re.fullmatch(r"-?[0-9]+", value), "a whole number")
        must(within(int(value), WHOLE.get(form) or LONG.get(form) or (-(2**63), 2**63)), f"within {form}")
        must(int(value) >= int(spec.get("minimum", value)) and int(value) <= int(spec.get("maximum", value)), "within its bounds")
        return int(value)
    must("enum" not in spec or value in spec["enum"], f"one of {spec.get('enum')}")
    must("pattern" not in spec or re.fullmatch(spec["pattern"], value), f"of the form {spec.get('pattern')}")
    return value


def served(root):
    """The document as Google serves it, but for where the methods are."""
    told = json.loads(PLACE.read_text())
    told["rootUrl"], told["baseUrl"], told["basePath"] = f"{root}/", f"{root}{BASE}", BASE
    told.pop("mtlsRootUrl", None)
    return told
