"""Lists as Compute Engine answers them: filter expressions, pages, partial answers.

Filters are of both kinds that Compute Engine knows and does not mix: AIP-160 (`(id = 1) OR (id = 2)`, `labels.a:*`), where OR binds
tighter than AND and what stands side by side is an AND; and `name eq 'a|b'`, a regular expression for the whole value.
"""

import base64
import fnmatch
import functools
import json
import re

from document import Violation

TOKEN = re.compile(r"""\s*(?:(\(|\)|!=|>=|<=|[=<>:])|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s()=<>:!"']+))""")


class Filter:
    def __init__(self, text, known):
        self.text, self.known, self.at = text, known, 0
        self.tokens, end = [], 0
        while text[end:].strip():
            found = TOKEN.match(text, end)
            self.must(found)
            sign, double, single, bare = found.groups()
            quoted = double if double is not None else single
            self.tokens.append(("sign", sign) if sign else ("text", quoted) if quoted is not None else ("word", bare))
            end = found.end()
        self.holds = self.sequence()
        self.must(self.at == len(self.tokens))

    def must(self, holds):
        if not holds:
            raise Violation(f"Invalid value for field 'filter': '{self.text}'. Invalid list filter expression.", "invalid")

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else (None, None)

    def take(self):
        self.must(self.at < len(self.tokens))
        self.at += 1
        return self.tokens[self.at - 1]

    def sequence(self):
        parts = [self.alternatives()]
        while self.peek() not in ((None, None), ("sign", ")")):
            if self.peek() == ("word", "AND"):
                self.take()
            parts.append(self.alternatives())
        return parts[0] if len(parts) == 1 else lambda one: all(part(one) for part in parts)

    def alternatives(self):
        parts = [self.term()]
        while self.peek() == ("word", "OR"):
            self.take()
            parts.append(self.term())
        if len(parts) == 1:
            return parts[0]
        # One field of many values, which is what hundreds of instances are asked for by.
        fields = {getattr(part, "field", None) for part in parts}
        if len(fields) == 1 and None not in fields:
            field, values = fields.pop(), {part.value for part in parts}
            return lambda one: written(field_of(one, field)) in values
        return lambda one: any(part(one) for part in parts)

    def term(self):
        if self.peek() == ("word", "NOT"):
            self.take()
            inner = self.term()
            return lambda one: not inner(one)
        if self.peek() == ("sign", "("):
            self.take()
            inner = self.sequence()
            self.must(self.take() == ("sign", ")"))
            return inner
        return self.comparison()

    def comparison(self):
        kind, field = self.take()
        self.must(kind == "word" and field.split(".")[0] in self.known)
        kind, operator = self.take()
        self.must(kind == "sign" and operator not in "()" or operator in ("eq", "ne"))
        kind, value = self.take()
        self.must(kind != "sign")
        holds = functools.partial(compare, field, operator, value)
        if operator == "=" and "*" not in value:
            holds.field, holds.value = field, value
        return holds


def field_of(one, path):
    for key in path.split("."):
        one = one.get(key) if isinstance(one, dict) else None
    return one


def written(value):
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def compare(field, operator, value, one):
    has = field_of(one, field)
    text = written(has)
    if operator in ("eq", "ne"):
        return (re.fullmatch(value, text) is not None) == (operator == "eq")
    if operator == ":":
        return has is not None if value == "*" else value in (has if isinstance(has, (list, dict)) else text)
    if operator in ("=", "!="):
        same = fnmatch.fnmatchcase(text, value) if "*" in value else text == value
        return same == (operator == "=")
    try:
        low, high = float(text), float(value)
    except ValueError:
        low, high = text, value
    return {"<": low < high, "<=": low <= high, ">": low > high, ">=": low >= high}[operator]


def page(resources, query, known):
    """Those of this page, and the next page's token where there is one."""
    if "filter" in query:
        wanted = Filter(query["filter"], known)
        resources = [one for one in resources if wanted.holds(one)]
    if query.get("orderBy") == "creationTimestamp desc":
        resources = sorted(resources, key=lambda one: one.get("creationTimestamp", ""), reverse=True)
    start, of = 0, query.get("filter", "")
    if query.get("pageToken"):
        try:
            start, filtered = json.loads(base64.urlsafe_b64decode(query["pageToken"]))
        except ValueError as error:
            raise Violation(f"Invalid value for field 'pageToken': '{query['pageToken']}'.", "invalid") from error
        if filtered != of:
            raise Violation("Invalid value for field 'pageToken': it is of another filter.", "invalid")
    most = query.get("maxResults", 500)
    if not 0 <= most <= 500:
        raise Violation(f"Invalid value for field 'maxResults': '{most}'. It must be between 0 and 500.", "invalid")
    end = start + (most or 500)
    token = base64.urlsafe_b64encode(json.dumps([end, of]).encode()).decode() if end < len(resources) else None
    return resources[start:end], token


def part(value, mask):
    """What `fields` asks for (`items(id,name),nextPageToken`, `items/id`)."""
    wanted, depth, begin = [], 0, 0
    for at, sign in enumerate(mask + ","):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            wanted.append(mask[begin:at])
            begin = at + 1
    if isinstance(value, list):
        return [part(one, mask) for one in value]
    if not isinstance(value, dict):
        return value
    left = {}
    for one in wanted:
        found = re.fullmatch(r"([\w*]+)(?:\((.*)\)|/(.*))?", one.strip())
        if not found:
            raise Violation(f"Invalid field selection {one}", "invalidParameter")
        name, inner = found.group(1), found.group(2) or found.group(3)
        for key in value if name == "*" else [name] if name in value else []:
            told = part(value[key], inner) if inner else value[key]
            left[key] = {**left[key], **told} if isinstance(told, dict) and isinstance(left.get(key), dict) else told
    return left
