"""Ten typical rules: ours beside cel-expr-python (C++), evaluation only and from the plain object.

    python bench/cel.py

A ratio above 1 says that ours is faster. The object is a kilobyte of JSON; cel-expr-python binds a dict at every
evaluation, as an API server must; its second figure has the object bound beforehand.
"""

import json
import timeit

from cel_expr_python import cel as google
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trimtab.model import cel

PORT = {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}
SCHEMA = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "min": {"type": "integer"},
        "max": {"type": "integer"},
        "name": {"type": "string"},
        "mode": {"type": "string"},
        "ratio": {"type": "number"},
        "ports": {"type": "array", "items": PORT},
        "tags": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "strategy": {"type": "object", "properties": {"surge": {"type": "integer"}, "kind": {"type": "string"}}},
    },
}
OBJECT = {
    "replicas": 3,
    "min": 1,
    "max": 10,
    "name": "frontend-7",
    "mode": "Active",
    "ratio": 0.5,
    "ports": [{"name": f"port-{i}", "port": 8000 + i} for i in range(8)],
    "tags": [f"tag-{i}" for i in range(20)],
    "labels": {f"key-{i}": f"value-{i}" for i in range(20)},
    "strategy": {"surge": 1, "kind": "Rolling"},
}
RULES = [
    "self.min <= self.max",
    "self.replicas >= self.min && self.replicas <= self.max",
    "self.mode in ['Active', 'Passive', 'Off']",
    "self.mode != 'Off' || self.replicas == 0",
    "has(self.strategy.surge) ? self.strategy.surge > 0 : true",
    "self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    "self.name.startsWith('front') && size(self.name) < 63",
    "self.ports.all(p, p.port > 0 && p.port < 65536)",
    "self.tags.exists(t, t == 'tag-19')",
    "self.labels.all(k, k.startsWith('key') && self.labels[k] != '')",
]


def best(call, number=300, repeat=7):
    call()
    return min(timeit.repeat(call, number=number, repeat=repeat)) / number * 1e6


def main():
    kind = cel.type_of_schema(SCHEMA)
    dynamic = google.Type.Map(google.Type.STRING, google.Type.DYN)
    env = google.NewEnv(variables={"self": dynamic})
    table = Table(title=f"CEL, µs for a rule on an object of {len(json.dumps(OBJECT))} bytes")
    for column in ("rule", "ours", "cel-expr-python", "ratio", "bound before", "ratio"):
        table.add_column(column, justify="left" if column == "rule" else "right")
    bound = env.Activation({"self": OBJECT})
    for rule in RULES:
        program, theirs = cel.compile(rule, {"self": kind}), env.compile(rule)
        budget = cel.Budget(total=1 << 60)
        assert program.evaluate({"self": kind.bind(OBJECT)}, budget) is theirs.eval(data={"self": OBJECT}).value()
        ours = best(lambda program=program, budget=budget: program.evaluate({"self": kind.bind(OBJECT)}, budget))
        google_dict = best(lambda theirs=theirs: theirs.eval(data={"self": OBJECT}))
        google_bound = best(lambda theirs=theirs: theirs.eval(bound))
        table.add_row(
            escape(rule),
            f"{ours:.2f}",
            f"{google_dict:.2f}",
            f"{google_dict / ours:.1f}",
            f"{google_bound:.2f}",
            f"{google_bound / ours:.1f}",
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
