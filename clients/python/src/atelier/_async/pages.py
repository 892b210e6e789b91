"""Lists that come in pages."""

from __future__ import annotations

from typing import Any, AsyncIterator, Dict, Generic, Mapping, TypeVar, cast

from .._rules import Operation
from .session import AsyncSession

Item = TypeVar("Item")
Page = TypeVar("Page")


class AsyncPages(Generic[Item, Page]):
    """A list. Iterate over it for all its items; pages are read when they are needed."""

    def __init__(
        self, session: AsyncSession, operation: Operation, values: Mapping[str, Any]
    ) -> None:
        self._session = session
        self._operation = operation
        self._values: Dict[str, Any] = dict(values)

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for page in self.pages():
            for item in cast("Dict[str, Any]", page)["data"]:
                yield item

    async def pages(self) -> AsyncIterator[Page]:
        """Iterates over the pages, each with `data` and, on lists that continue, `next_cursor`."""
        values = dict(self._values)
        while True:
            page = await self._session.call(self._operation, values)
            yield cast(Page, page)
            cursor = page.get("next_cursor")
            if not cursor or "cursor" not in self._operation.query:
                return
            values["cursor"] = cursor

    async def first_page(self) -> Page:
        """Reads one page."""
        return cast(Page, await self._session.call(self._operation, self._values))
