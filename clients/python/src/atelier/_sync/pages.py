# Derived from _async by build/clients. Do not edit.
"""Lists that come in pages."""

from __future__ import annotations

from typing import Any, Iterator, Dict, Generic, Mapping, TypeVar, cast

from .._rules import Operation
from .session import Session

Item = TypeVar("Item")
Page = TypeVar("Page")


class Pages(Generic[Item, Page]):
    """A list. Iterate over it for all its items; pages are read when they are needed."""

    def __init__(
        self, session: Session, operation: Operation, values: Mapping[str, Any]
    ) -> None:
        self._session = session
        self._operation = operation
        self._values: Dict[str, Any] = dict(values)

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            for item in cast("Dict[str, Any]", page)["data"]:
                yield item

    def pages(self) -> Iterator[Page]:
        """Iterates over the pages, each with `data` and, on lists that continue, `next_cursor`."""
        values = dict(self._values)
        while True:
            page = self._session.call(self._operation, values)
            yield cast(Page, page)
            cursor = page.get("next_cursor")
            if not cursor or "cursor" not in self._operation.query:
                return
            values["cursor"] = cursor

    def first_page(self) -> Page:
        """Reads one page."""
        return cast(Page, self._session.call(self._operation, self._values))
