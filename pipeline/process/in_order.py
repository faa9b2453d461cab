"""Work on threads whose results come in the order of its items, so that nothing depends on the number of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

#: Most threads that read an input. The thread that takes their results cannot keep up with more.
MOST_THREADS = 16

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """`work` of every item, in the order of the items.

    Parameters
    ----------
    work : callable
        It must not change what another call reads. With one thread the caller does it.
    items : iterable
        The caller's thread takes them, one more than there are `threads` before the first result is wanted.
    threads : int
        At least 1.

    Notes
    -----
    An error of `work` comes in place of the result. An error of `items` comes behind the results of the items before.
    So the first error is the same with any number of threads. No work is under way after an error or the end.
    """
    if threads == 1:
        yield from map(work, items)
        return
    source, left = iter(items), True
    under_way: deque[Future[Result]] = deque()
    failed: BaseException | None = None
    with ThreadPoolExecutor(threads) as pool:
        try:
            while left or under_way:
                while left and len(under_way) <= threads:
                    try:
                        item = next(source)
                    except StopIteration:
                        left = False
                    except Exception as error:  # raised below, when its turn comes
                        failed, left = error, False
                    else:
                        under_way.append(pool.submit(work, item))
                        del item
                if under_way:
                    yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()
    if failed is not None:
        raise failed


def ahead(items: Iterable[Item], n: int) -> Iterator[Item]:
    """The items, of which a thread of its own takes up to `n` before they are wanted.

    Notes
    -----
    An error of `items` comes in place of the item. Nothing is under way after an error or the end.
    """
    source = iter(items)
    with ThreadPoolExecutor(1) as pool:
        under_way = deque(pool.submit(next, source, _END) for _ in range(n))
        try:
            while (item := under_way.popleft().result()) is not _END:
                under_way.append(pool.submit(next, source, _END))
                yield item
                del item
        finally:
            for future in under_way:
                future.cancel()


_END: Any = object()
