"""The layout of a term id: a signed 64-bit integer, the same on every machine.

bits 63..60 tag · bits 59..0 payload. Seen as an unsigned integer the tag is `id >> 60`.

| tag | term | payload |
| --- | --- | --- |
| 0 | unbound (the whole id is 0) | |
| 1 | IRI | the 60 leading bits of MurmurHash3 x64 128 (its first 64-bit word, seed 0) of the N-Triples form `<…>` |
| 2 | literal without an inline form | likewise, of the canonical N-Triples form |
| 3 | blank node | the 60 leading bits of a hash of its label and its scope; needs no dictionary: its label is `b` + 15 hex digits |
| 4 | overflow | local number of a term whose id another term had already |
| 5 | integer | bits 59..56: datatype (INTEGER_DATATYPES); bits 55..0: two's complement value |
| 6 | decimal | bits 59..56: number of fraction digits 0..15; bits 55..0: two's complement unscaled value |
| 7 | double, in plain decimal notation | as decimal |
| 8 | float, in plain decimal notation | as decimal |
| 9 | boolean | 0 false, 1 true, 2 "0", 3 "1" |
| 10 | dateTime, at most 3 fraction digits | bits 59..58: fraction digits; 57..51: zone; 50..0: milliseconds of the UTC instant |
| 11 | dateTime, 4 to 6 digits, zone none or Z | bits 59..58: fraction digits - 4; 57: zone is Z; 56..0: microseconds |
| 12 | date | bits 59..53: zone; bits 52..0: days since the epoch (of the date as written), two's complement |
| 13 | decimal of 18 or 19 digits, a rounded fraction | bits 59..56: scale; 55..40: divisor; 39..0: two's complement dividend |

A decimal of tag 13 is dividend / (divisor * 10**scale), rounded half to even to 19 digits (kernels/quotients.py says which these
are): the average of three readings, 21.33333333333333333, is inline, though no 64 bits hold its digits.

Instants and days count from the epoch, in two's complement. Zone: 0 none, 1 "Z", otherwise 2 + 56 + offset in quarters of
an hour (+00:00 is 58; -14:00 is 2; +14:00 is 114). A dateTime without a zone is taken as UTC.

A term is inline only if its exact lexical form comes back from the id: "5" is, "05", "+5" and "-0" are hashed; "23.50" is
(unscaled 2350, two fraction digits), ".5", "5." and "-0.0" are hashed; a double "23.5" is, "2.35E1" and "INF" are hashed.
A decimal, double or float without a point has zero fraction digits: "23"^^xsd:double.
"""

from __future__ import annotations

UNBOUND = 0

TAG_SHIFT = 60
PAYLOAD_MASK = (1 << 60) - 1
VALUE_BITS = 56

TAG_IRI = 1
TAG_LITERAL = 2
TAG_BLANK = 3
TAG_OVERFLOW = 4
TAG_INTEGER = 5
TAG_DECIMAL = 6
TAG_DOUBLE = 7
TAG_FLOAT = 8
TAG_BOOLEAN = 9
TAG_DATETIME = 10
TAG_DATETIME_MICROS = 11
TAG_DATE = 12
TAG_QUOTIENT = 13

# Signed ids: tags from 8 on are negative numbers.
FALSE = -(7 << 60)
TRUE = FALSE + 1

XSD = "http://www.w3.org/2001/XMLSchema#"

INTEGER_DATATYPES = (
    "integer",
    "int",
    "long",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedLong",
    "unsignedInt",
    "unsignedShort",
    "unsignedByte",
)
"""Local names in the XSD namespace; the position is the datatype's number in an integer id."""

ZONE_Z = 1
ZONE_UTC_OFFSET = 58
