"""Examples at the end of each command's help."""

from __future__ import annotations

import click

EXAMPLES = {
    "run": (
        "cqels run hot.rq --stream http://ex.org/readings=readings.nq",
        "cqels run hot.rq --stream http://ex.org/readings=readings.csv --map http://ex.org/readings=reading.rq --format csv",
        "cqels run rooms.rq --stream 'http://ex.org/readings=mqtt://localhost/readings/+' --clock wall --checkpoint state",
        "cat readings.nq | cqels run hot.rq --stream http://ex.org/readings=- --format table",
    ),
    "explain": (
        "cqels explain hot.rq",
        "cqels explain hot.rq --format svg > plan.svg",
        "cqels explain --analyze hot.rq --stream http://ex.org/readings=readings.nq",
        "cqels explain hot.rq --runner spark --partitions 8",
    ),
    "demo": ("cqels demo flights --days 1", "cqels demo patterns --query fire", "cqels demo --list"),
    "bench": (
        "cqels bench srbench --queries 1,4 --triples 100000 --check",
        "cqels bench --suite-dir mine --json before.json",
        "cqels bench lsbench --compare before.json --plots plots",
    ),
    "map": ("cqels map readings.csv --map reading.rq --limit 3",),
    "rules": ("cqels rules program.txt facts.txt --until 60",),
    "serve": ("cqels serve --data streams --port 8737",),
    "submit": ("cqels submit hot.rq --name hot --changelog", "cqels submit hot.rq --name hot --static rooms.ttl"),
    "list": ("cqels list", "cqels list --streams --format json"),
    "show": ("cqels show hot", "cqels show hot --plan"),
    "tail": ("cqels tail hot", "cqels tail hot --from 0 --limit 10 --format json"),
    "send": (
        "cqels send readings readings.nq --iri http://ex.org/readings",
        "cat readings.nq | cqels send readings - --type application/n-quads",
    ),
    "pause": ("cqels pause hot",),
    "resume": ("cqels resume hot",),
    "stop": ("cqels stop hot --server https://cqels.example.org --token-file token",),
    "checkpoint show": ("cqels checkpoint show state",),
    "checkpoint copy": ("cqels checkpoint copy state state-of-monday",),
    "compile": ("cqels compile", "cqels compile --target x86-64-v3 --into kernels"),
}
"""By command; a test reads each of them with the command's options."""


class WithExamples(click.Command):
    """A command whose help ends with its examples, each on a line of its own, however wide the terminal is."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        examples = EXAMPLES.get(ctx.command_path.partition(" ")[2], ())
        if examples:
            with formatter.section("Examples"):
                for line in examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
