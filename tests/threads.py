"""Tasks in threads side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable


def together(*tasks: Callable[[], object]) -> None:
    """Run the tasks in a thread each; none may fail or hang."""
    errors: list[BaseException] = []

    def guarded(task: Callable[[], object]) -> None:
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(t,), daemon=True) for t in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(t.is_alive() for t in threads), "threads wait for each other"
    assert not errors, errors
