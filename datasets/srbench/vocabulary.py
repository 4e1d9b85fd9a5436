"""IRIs of SRBench: those of its schema, and the base of invented ones."""

from __future__ import annotations

OBSERVATIONS = "http://www.cwi.nl/SRBench/observations"
"""The stream that the benchmark's queries name."""

BASE = "http://cqels.example/srbench/"
"""Stations, observations, places and hurricanes, all invented."""

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
TIME = "http://www.w3.org/2006/time#"
OM = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
WEATHER = "http://knoesis.wright.edu/ssw/ont/weather.owl#"
GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"
GEONAMES = "http://www.geonames.org/ontology#"
DBPEDIA = "http://dbpedia.org/ontology/"
DBPEDIA_PROPERTY = "http://dbpedia.org/property/"
YAGO = "http://dbpedia.org/class/yago/"


def om(name: str) -> str:
    return f"<{OM}{name}>"


def weather(name: str) -> str:
    return f"<{WEATHER}{name}>"


RDF_TYPE = f"<{RDF}type>"
