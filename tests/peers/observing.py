"""Metrics and alerts as other people's parsers read them: prometheus_client and PyYAML.

    observing.py metrics < TEXT     # a line of JSON: {name: {"type", "samples": [[name, {label: value}, number], ...]}}
    observing.py rules < YAML       # a line of JSON: the document
    observing.py documents < YAML   # a line of JSON: all documents that there are, but for empty ones
"""

import json
import sys

if sys.argv[1] == "metrics":
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    families = {
        family.name: {
            "type": family.type,
            "help": family.documentation,
            "samples": [[sample.name, sample.labels, sample.value] for sample in family.samples],
        }
        for family in text_string_to_metric_families(sys.stdin.read())
    }
    print(json.dumps(families))
elif sys.argv[1] == "documents":
    import yaml

    print(json.dumps([document for document in yaml.safe_load_all(sys.stdin) if document]))
else:
    import yaml

    print(json.dumps(yaml.safe_load(sys.stdin)))
