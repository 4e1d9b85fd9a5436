"""Turtle, TriG, RDF/XML and JSON-LD: an RDF library parses them, and the tokenizer reads its N-Quads.

Nodes without a label are labelled by their order in the file, so that ids are equal from run to run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import pyoxigraph

from cqels_py.errors import DataError, Place
from cqels_py.formats.compression import ByteStream
from cqels_py.formats.contexts import NOT_LOADED, named_in, not_supplied, with_contexts
from cqels_py.formats.depth import TooDeep, at_most, check_depth, shallow
from cqels_py.formats.encodings import BYTE_ORDER_MARK, without_mark, xml_in_utf8
from cqels_py.formats.json_ld import JsonLd, Judge
from cqels_py.formats.lines import Malformed
from cqels_py.formats.rdf_versions import first_beyond, is_beyond
from cqels_py.formats.times import GENERATED_AT
from cqels_py.formats.turtle_syntax import version_announced
from cqels_py.formats.turtle_text import FORMS, TurtleText, library_message
from cqels_py.formats.turtle_text import PARSER_ERRORS as PARSER_ERRORS
from cqels_py.formats.xml import LANGUAGES_WITHIN, NotWellFormed, checked, takes_language_away

RDF_FORMATS = {
    "nt": pyoxigraph.RdfFormat.N_TRIPLES,
    "nq": pyoxigraph.RdfFormat.N_QUADS,
    "ttl": pyoxigraph.RdfFormat.TURTLE,
    "trig": pyoxigraph.RdfFormat.TRIG,
    "rdf": pyoxigraph.RdfFormat.RDF_XML,
    "jsonld": pyoxigraph.RdfFormat.JSON_LD,
}

_BATCH = 8192
_IN_A_GRAPH = re.compile(rb'\S+ \S+ (?:[<_]\S+|"(?:[^"\\]++|\\.)*+"\S*) [<_]')
_GENERATED_AT = GENERATED_AT[1:-1]
_DEFAULT = pyoxigraph.DefaultGraph()
_NODES_REMEMBERED = 1 << 20
_NO_LANGUAGE_TAG = "error while parsing language tag ''"
_BEGINNING = 1 << 16
"""The number of bytes of a document that are searched for the context that it names."""
_LABEL_BYTES = 64
_LOOKS_ALIKE = re.compile(rb"""(?:_:|\bnodeID\s{0,8}=\s{0,8}["'])[0-9a-f]{24,32}(?![0-9a-zA-Z])""")
# The library's random labels are 128 bits in hexadecimal without leading zeros.
# A blank node as subject, as object after subject and predicate, or as graph at the end of a line.
_UNLABELLED = re.compile(
    rb"^_:([0-9a-f]{24,32})(?= )"
    rb"|(?<=> )_:([0-9a-f]{24,32})(?= (?:\.$|<[^<>]*> \.$|_:\S+ \.$))"
    rb"|(?<= )_:([0-9a-f]{24,32})(?= \.$)",
    re.MULTILINE,
)
_LIKE_OURS = re.compile(_UNLABELLED.pattern.replace(rb"[0-9a-f]{24,32}", rb"node\.[^\s<>]+"), re.MULTILINE)
"""Labels in the file that look like the new ones."""


def statements_of(
    document: bytes, form: str, source: str | None = None, line: int | None = None, **options: Any
) -> list[Any]:
    """All statements of a document. DataError for one that is nested too deeply or has too many; PARSER_ERRORS.

    `line`: that of the document in its source, where errors are to name it alone. `options`: those of the library.
    """
    check_depth(document, form, source, line)
    parser = pyoxigraph.parse(document, format=RDF_FORMATS[form], **options)
    return at_most(parser, source, line)


def nquads_blocks(
    chunks: Iterator[bytes], form: str, source: str, malformed: Malformed, json_ld: JsonLd
) -> Iterator[bytes]:
    """The statements of a file of any of RDF_FORMATS as blocks of N-Quads.

    Malformed input is reported with its place; the parser continues after it where the format allows that.
    """
    names = BlankNames()
    if form in FORMS:
        yield from _turtle_blocks(chunks, form, source, malformed, names)
        return
    if form == "jsonld":
        judge = Judge(json_ld.omissions)
        chunks = shallow(with_contexts(without_mark(chunks), json_ld.contexts, source), form, source)
        stream = ByteStream(names.watched(judge.watched(chunks)))
        parser = json_ld.parser(cast(IO[bytes], stream))

        def text(quads: list[Any]) -> bytes:
            return judge.nquads(graphs_last(quads))

    else:
        # In documents that take a language away, IRIs and language tags are judged by the tokenizer alone.
        lenient, chunks = takes_language_away(chunks)
        stream = ByteStream(names.watched(_prepared_xml(chunks, source)))
        parser = cast(
            Iterator[Any], pyoxigraph.parse(cast(IO[bytes], stream), format=RDF_FORMATS[form], lenient=lenient)
        )
        text = partial(_nquads_of_rdf_1_1, source=source, malformed=malformed)
    for quads in _batches(parser, stream, form, source, malformed, names):
        yield names.rename(text(quads))
    if isinstance(stream.error, NotWellFormed | TooDeep):
        malformed(stream.error)
    elif stream.error is not None:
        raise stream.error


def put_nquads(
    chunks: Iterator[bytes],
    form: str,
    source: str,
    malformed: Malformed,
    put: Callable[[bytes], object],
    base: str | None,
) -> None:
    """As `nquads_blocks`, for Turtle and TriG that comes while it is read: all that has been read is put before more is waited for.

    `base`: of relative IRIs. Errors of `chunks` are raised, after the statements before them.
    """
    names, batch = BlankNames(), list[Any]()
    broken: list[Exception] = []

    def give() -> None:
        if batch:
            put(names.rename(to_nquads(batch)))
            batch.clear()

    def watched() -> Iterator[bytes]:
        try:
            for chunk in chunks:
                yield chunk
                give()
        except Exception as error:
            # The library would make another one of it.
            broken.append(error)

    text = TurtleText(names.watched(shallow(without_mark(watched()), form, source)), form, source, base)
    _tell(text.announcement(), malformed)
    while text.parser is not None:
        wrong: DataError | None = None
        try:
            for quad in text.parser:
                if is_beyond(quad.object):
                    wrong = text.refuse(batch)
                    break
                batch.append(quad)
            else:
                text.parser = None
        except PARSER_ERRORS as error:
            if isinstance(text.error, TooDeep):
                text.parser = None
            elif not broken:
                wrong = text.recover(error, batch)
        give()
        if broken:
            raise broken[0]
        _tell(wrong, malformed)
    if text.error is not None:
        raise text.error


def _nquads_of_rdf_1_1(quads: list[Any], source: str, malformed: Malformed) -> bytes:
    """The statements without those of RDF 1.2, which are malformed."""
    text = to_nquads(quads)
    if first_beyond(text, quads) is None:
        return text
    for quad in quads:
        if is_beyond(quad.object):
            error = DataError(f"{source}: {quad.object} is a term of RDF 1.2, which is not supported yet")
            malformed(error.about(to_nquads([quad]).decode()))
    return to_nquads([quad for quad in quads if not is_beyond(quad.object)])


def _turtle_blocks(
    chunks: Iterator[bytes], form: str, source: str, malformed: Malformed, names: BlankNames
) -> Iterator[bytes]:
    text = TurtleText(names.watched(shallow(without_mark(chunks), form, source)), form, source)
    _tell(text.announcement(), malformed)
    while text.parser is not None:
        batch = list[Any]()
        error = _fill(batch, text.parser)
        nquads, count = to_nquads(batch), len(batch)
        beyond = first_beyond(nquads, batch)
        wrong: DataError | None = None
        if beyond is not None:
            del batch[beyond:]
            wrong = text.refuse(batch)
        elif isinstance(text.error, TooDeep) and error is not None:
            text.parser = None
        elif error is not None:
            wrong = _explained(text.recover(error, batch), source)
        elif len(batch) < _BATCH:
            text.parser = None
        if batch:
            yield names.rename(nquads if len(batch) == count else to_nquads(batch))
        _tell(wrong, malformed)
    if isinstance(text.error, TooDeep):
        malformed(text.error)
    elif text.error is not None:
        raise text.error


def turtle_quads(body: bytes, form: str, source: str, base: str | None = None) -> list[Any]:
    """The statements of a whole text of Turtle or TriG. DataError, with its place in the text, for the first error."""
    body = body.removeprefix(BYTE_ORDER_MARK)
    with suppress(*PARSER_ERRORS):
        quads = statements_of(body, form, source, base_iri=base)
        if version_announced(body) is None and not any(is_beyond(quad.object) for quad in quads):
            return quads
    # Read again, to find the place.
    put_nquads(iter([body]), form, source, _stop, bytes, base)
    raise AssertionError


def xml_nquads(body: bytes, source: str, base: str) -> bytes:
    """A whole document of RDF/XML as N-Quads, whose terms are to be judged: where it takes languages away, they have not been.

    `base`: of relative IRIs. DataError for a document that is not whole, or beyond limits; PARSER_ERRORS.
    """
    lenient, chunks = takes_language_away([body])
    text = b"".join(_prepared_xml(chunks, source))
    return to_nquads(statements_of(text, "rdf", source, base_iri=base, lenient=lenient))


def ends_in_a_graph(nquads: bytes) -> bool:
    """Is the last statement of a text of N-Quads one of a named graph? In the order of `graphs_last`, this is so if any is."""
    return _IN_A_GRAPH.match(nquads, nquads.rfind(b"\n", 0, -1) + 1) is not None


def graphs_last(quads: list[Any]) -> list[Any]:
    """The statements in the order in which they can be read: times of graphs, others of the default graph, those of named graphs."""
    names = {quad.graph_name for quad in quads} - {_DEFAULT}
    # Without named graphs, the statements about a subject stay together.
    return sorted(quads, key=partial(_turn, names)) if names else quads


def _turn(names: set[Any], quad: Any) -> int:
    if quad.graph_name != _DEFAULT:
        return 2
    return int(quad.subject not in names or quad.predicate.value != _GENERATED_AT)


def _stop(error: DataError) -> None:
    raise error


def _tell(wrong: DataError | None, malformed: Malformed) -> None:
    if wrong is not None:
        malformed(wrong)


def _prepared_xml(chunks: Iterable[bytes], source: str) -> Iterator[bytes]:
    """The chunks of RDF/XML in the form that the library reads."""
    return checked(shallow(xml_in_utf8(iter(chunks), source), "rdf", source), source)


def to_nquads(quads: list[Any]) -> bytes:
    text = pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.N_QUADS)
    assert text is not None
    # A lenient parser takes xml:lang="" for a tag. At a line's end this is no part of a text, in which quotes are escaped.
    return text.replace(b'"@ .\n', b'" .\n')


def _batches(
    parser: Iterator[Any], stream: ByteStream, form: str, source: str, malformed: Malformed, names: BlankNames
) -> Iterator[list[Any]]:
    while True:
        batch: list[Any] = []
        error = _fill(batch, parser)
        if batch:
            yield batch
        if error is not None and stream.error is None:
            if form == "jsonld":
                malformed(json_error(error, names.beginning, source))
            else:
                malformed(_explained(syntax_error(error, source), source))
            if form == "jsonld" or not isinstance(error, SyntaxError):
                # The parser does not advance any further, or where it would go on texts and brackets may not be those of the scan.
                return
        elif len(batch) < _BATCH:
            return


def _fill(batch: list[Any], parser: Iterable[Any]) -> Exception | None:
    """Append up to _BATCH statements, or those before an error."""
    try:
        batch.extend(islice(parser, _BATCH))
    except PARSER_ERRORS as error:
        return error
    return None


def syntax_error(error: Exception, source: str, line: int | None = None) -> DataError:
    """The library's error with its place. `line`: that of the source, if the library saw only that line."""
    message = library_message(error)
    offset = error.offset if isinstance(error, SyntaxError) else None
    line = line or (error.lineno if isinstance(error, SyntaxError) else None)
    if line is None:
        return DataError(f"{source}: {message}")
    return DataError(message, Place(line, offset, source))


def json_error(error: Exception, beginning: bytes, source: str, line: int | None = None) -> DataError:
    """The error of the library for a JSON-LD document that begins like this."""
    if NOT_LOADED in str(error):
        return not_supplied(named_in(beginning) or "IRI", source, line)
    return syntax_error(error, source, line)


def _explained(error: DataError, source: str) -> DataError:
    """The error, with a hint for files that may contain more than Turtle, and for what large ones may not have."""
    if _NO_LANGUAGE_TAG in error.message:
        known = f'xml:lang="" is read in documents in whose first {LANGUAGES_WITHIN >> 20} MiB it stands'
        return DataError(f"{error.message}; {known}", error.place)
    if Path(source.removesuffix(".gz").removesuffix(".zst")).suffix.lower() == ".n3":
        explained = DataError(f"{error.message}; of N3, only the subset that is Turtle is read", error.place)
        explained.element = error.element
        return explained
    return error


class BlankNames:
    """Assigns labels in order of appearance to nodes that the library labelled at random.

    If the file has labels that look like those of the library, no label is ever forgotten.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, bytes] = {}
        self._next = 0
        self._looks_alike = False
        self.beginning = b""

    def watched(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks of the file, inspected before they are parsed."""
        last = b""
        for chunk in chunks:
            if len(self.beginning) < _BEGINNING:
                self.beginning += chunk[:_BEGINNING]
            if not self._looks_alike:
                self._looks_alike = _LOOKS_ALIKE.search(last + chunk[:_LABEL_BYTES]) is not None
                self._looks_alike |= _LOOKS_ALIKE.search(chunk) is not None
            last = (last + chunk[-_LABEL_BYTES:])[-_LABEL_BYTES:]
            yield chunk

    def rename(self, nquads: bytes) -> bytes:
        if b"_:" not in nquads:
            return nquads
        if b"_:node." in nquads:
            nquads = _LIKE_OURS.sub(_another_name, nquads)
        renamed = _UNLABELLED.sub(self._name, nquads)
        if len(self._numbers) > _NODES_REMEMBERED and not self._looks_alike:
            # The uses of such a node are close together; old ones are forgotten.
            self._numbers = dict(islice(self._numbers.items(), _NODES_REMEMBERED // 2, None))
        return renamed

    def _name(self, match: re.Match[bytes]) -> bytes:
        label = match[1] or match[2] or match[3]
        known = self._numbers.get(label)
        if known is None:
            known = self._numbers[label] = b"_:node.%d" % self._next
            self._next += 1
        return known


def _another_name(match: re.Match[bytes]) -> bytes:
    return b"_:node.own." + (match[1] or match[2] or match[3]).removeprefix(b"node.")
