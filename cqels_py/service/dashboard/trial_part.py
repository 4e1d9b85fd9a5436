"""The part of the editor's page on which a query is tried: a sample of each stream, and the results over them."""

from __future__ import annotations

import asyncio
from typing import Any

from nicegui import events, ui

from cqels_py.errors import DataError
from cqels_py.service.dashboard.layout import counted, error_label, table, with_line
from cqels_py.service.dashboard.trial import FORMATS, MOST_CHARACTERS, Sample, Trial, Trials, sample_of
from cqels_py.service.definitions import QueryDefinition
from cqels_py.service.service import Service
from cqels_py.sources.documents import FORMATS as MEDIA_TYPES

_EMPTY = "Try out runs the query over a sample of its streams, such as their last elements, and keeps nothing of it."
_NO_SAMPLE = "No element of this stream has come yet: paste some, or upload a file."


class TrialPart:
    """Samples and results."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._trials = Trials(service)
        self._boxes: dict[str, _SampleBox] = {}
        self._told = ui.label(_EMPTY).props('role="status"')
        self._results = ui.column().classes("w-full")
        self._samples = ui.column().classes("w-full gap-1")

    def streams_of(self, definition: QueryDefinition) -> list[str]:
        """The IRIs of the streams that a query reads. Errors as of `Service.put_query`."""
        return self._trials.streams_of(definition)

    async def run(self, definition: QueryDefinition, streams: list[str]) -> None:
        """Try the query, and show its results. Errors as of `Service.put_query`; those of samples are shown beside them."""
        for iri in [each for each in self._boxes if each not in streams]:
            self._boxes.pop(iri).remove()
        with self._samples:
            for iri in streams:
                if iri not in self._boxes:
                    self._boxes[iri] = _SampleBox(self._service, iri)
        for box in self._boxes.values():
            box.show_error("")
        self._results.clear()
        self._told.text = "Trying …"
        samples = {iri: box.sample for iri, box in self._boxes.items()}
        try:
            found = await asyncio.to_thread(self._trials.tried, definition, samples)
        except DataError as error:
            self._told.text = ""
            if error.stream not in self._boxes:
                raise
            self._boxes[error.stream].show_error(with_line(error))
            return
        except BaseException:
            self._told.text = ""
            raise
        self._show(found)

    def _show(self, found: Trial) -> None:
        parts = [f"{counted(len(found.rows), 'result')} of {counted(found.elements, 'element')}"]
        parts += [f"{found.late:,} of them late"] if found.late else []
        parts += [found.ended] if found.ended else []
        self._told.text = "; ".join(parts) + "."
        if not found.elements:
            self._told.text = "There are no elements to try it on: paste some below, or upload a file."
        with self._results:
            shown = table([name for name, _ in found.columns], "number", "No result.", dict(found.columns))
            shown.rows = found.rows


class _SampleBox:
    """The sample of a stream: its last elements, or a text that somebody writes."""

    def __init__(self, service: Service, iri: str) -> None:
        self._service = service
        self._iri = iri
        with ui.expansion(f"Sample of {iri}").classes("w-full break-all").props("dense") as self._box:
            with ui.row().classes("items-center gap-2"):
                self._format = ui.select(FORMATS, value="nq", label="Format").props("dense outlined").classes("w-32")
                ui.button("Last elements", on_click=self._take_last).props("outline no-caps dense")
                ui.button("Upload a file", on_click=self._pick).props("outline no-caps dense")
            self._upload = ui.upload(
                on_upload=self._uploaded, on_rejected=self._too_large, max_file_size=MOST_CHARACTERS
            )
            self._upload.props("auto-upload").classes("hidden")
            self._text = ui.textarea(f"Elements of {iri}").props(
                "outlined input-class='font-mono text-xs whitespace-pre'"
            )
            self._text.classes("w-full")
        self._error = error_label()
        self._take_last()

    @property
    def sample(self) -> Sample:
        """As it is written now."""
        return Sample(self._text.value or "", self._format.value)

    def show_error(self, text: str) -> None:
        """Show the error; "": there is none."""
        self._error.text = text
        if text:
            self._box.open()

    def remove(self) -> None:
        """Take it off the page."""
        self._box.delete()
        self._error.delete()

    def _take_last(self) -> None:
        seen = self._service.engine.watched
        text = sample_of([] if seen is None else seen.of(self._iri))
        self._format.value, self._text.value = "nq", text[: text.rfind("\n", 0, MOST_CHARACTERS) + 1]
        if not text:
            self.show_error(_NO_SAMPLE)

    def _pick(self) -> None:
        self._upload.run_method("pickFiles")

    async def _uploaded(self, given: events.UploadEventArguments) -> None:
        ending = given.file.name.rpartition(".")[2].lower()
        found = ending if ending in FORMATS else MEDIA_TYPES.get(given.file.content_type, "nq")
        content = await given.file.read()
        if b"\0" in content:
            self.show_error("this file is no text")
            return
        self._text.value = content.decode("utf-8", "replace")
        self._format.value = found if found in FORMATS else "nq"
        self.show_error("")

    def _too_large(self, _: Any) -> None:
        self.show_error(f"a sample has at most {MOST_CHARACTERS // 1024} KiB")
