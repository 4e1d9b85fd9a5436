"""IRIs of the social network's vocabulary, as the generator of the Linked Stream Benchmark uses them; terms in N-Triples syntax."""

from __future__ import annotations

SIB = "http://www.ins.cwi.nl/sib/"
SIB_TERMS = SIB + "vocabulary/"
SIOC = "http://rdfs.org/sioc/ns#"
SIOC_TYPES = "http://rdfs.org/sioc/type#"
FOAF = "http://xmlns.com/foaf/0.1/"
DC = "http://purl.org/dc/elements/1.1/"
DCTERMS = "http://purl.org/dc/terms/"
DBPEDIA_ONTOLOGY = "http://dbpedia.org/ontology/"
DBPEDIA_PROPERTY = "http://dbpedia.org/property/"

RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
LATITUDE = f"<{DBPEDIA_PROPERTY}latd>"
LONGITUDE = f"<{DBPEDIA_PROPERTY}longd>"
CREATED = f"<{DC}created>"

PERSON = SIB + "person/p"
USER = SIB + "user/u"
FORUM = SIB + "forum/fo"
GROUP = SIB + "group/g"
MEMBERSHIP = SIB + "group/membership/gm"
FRIENDSHIP = SIB + "friendship/fr"
POST = SIB + "post/po"
COMMENT = SIB + "post/comment/co"
ALBUM = SIB + "photoalbum/pa"
PHOTO = SIB + "photoalbum/photo/pho"
GPS = SIB + "gps/gps"

GPS_STREAM = "http://deri.org/gpsstream"
POSTS = "http://deri.org/poststream"
POST_LIKES = "http://deri.org/likedpoststream"
PHOTOS = "http://deri.org/photostream"
PHOTO_LIKES = "http://deri.org/likedphotostream"


def sib(name: str) -> str:
    """A term of the Social Intelligence Benchmark, such as sib:like."""
    return f"<{SIB_TERMS}{name}>"


def sioc(name: str) -> str:
    return f"<{SIOC}{name}>"


def foaf(name: str) -> str:
    return f"<{FOAF}{name}>"
