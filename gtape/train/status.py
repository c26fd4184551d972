"""What became of a restore."""

from __future__ import annotations

import warnings

from gtape.train.restoring import Match, differences

_ADVICE = ("A model gets its variables when it is built: call it once, or build(input_shape), "
           "before the restore")


class RestoreStatus:
    """How the names in a checkpoint matched those of the objects.

    A status that goes away unasked, while names were left over on either side, gives a
    UserWarning; `expect_partial()` says that this is meant.
    """

    def __init__(self, path: str | None, match: Match | None) -> None:
        self._path, self._match = path, match
        self._asked = match is None or not differences(match)

    def _matched(self) -> Match:
        self._asked = True
        if self._match is None:
            raise AssertionError("no checkpoint was restored: the path was None")
        return self._match

    def assert_consumed(self) -> RestoreStatus:
        """Check that everything in the file, and everything in the objects, was restored.

        Raises:
            AssertionError: something was left over; the names are listed.
        """
        self._require(self._matched())
        return self

    def assert_existing_objects_matched(self) -> RestoreStatus:
        """Check that everything in the objects was restored; the file may hold more.

        Raises:
            AssertionError: the file lacks something; the names are listed.
        """
        self._require(self._matched()._replace(unexpected=[]))
        return self

    def assert_nontrivial_match(self) -> RestoreStatus:
        """Check that anything was restored.

        Raises:
            AssertionError: file and objects have no name in common.
        """
        match = self._matched()
        if not match.common:
            self._require(match)
            raise AssertionError(f"the checkpoint '{self._path}' and the objects are empty")
        return self

    def expect_partial(self) -> RestoreStatus:
        """Names left over are meant: no warning."""
        self._asked = True
        return self

    def _require(self, match: Match) -> None:
        texts = differences(match)
        if texts:
            raise AssertionError(f"the checkpoint '{self._path}' was restored in part. "
                                 f"{'; '.join(texts)}. {_ADVICE}")

    def __del__(self) -> None:
        if not self.__dict__.get("_asked", True) and self._match is not None:
            warnings.warn(f"the checkpoint '{self._path}' was restored in part. "
                          f"{'; '.join(differences(self._match))}. {_ADVICE}; if this is meant, "
                          f"write checkpoint.restore(path).expect_partial()", UserWarning,
                          stacklevel=2)
