"""Readings from an MQTT broker, alerts to it, and nothing lost: python examples/mqtt_service.py mqtt://localhost STATE"""

import sys

import cqels_py as cqels

READING = """PREFIX : <http://ex.org/> CONSTRUCT { ?s :in ?room ; :temperature ?temperature }
WHERE { BIND(IRI(CONCAT("http://ex.org/", ?sensor)) AS ?s) }"""
HOT = """PREFIX : <http://ex.org/> SELECT ?room (MAX(?t) AS ?hottest)
WHERE { STREAM :readings [RANGE 5m] { ?s :in ?room ; :temperature ?t } } GROUP BY ?room HAVING (MAX(?t) > 30)"""

broker, state = sys.argv[1:]
with cqels.Engine(checkpoint=state, clock="wall") as engine:
    engine.register(HOT, name="hot").write_to(f"{broker}/alerts/{{room}}")
    engine.run(
        {"http://ex.org/readings": f"{broker}/readings/+?time=arrival"},
        maps={"http://ex.org/readings": cqels.Mapping.of(READING)},
        progress=lambda _: engine.commit(),
    )
