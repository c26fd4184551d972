"""gtape.raw_ops: ops of TensorFlow that have no function of their own, by keywords alone."""

from __future__ import annotations

from typing import Any

from gtape.ops.image.resampling import projective_transform as ImageProjectiveTransformV3
from gtape.ops.indexing.slicing import dynamic_update_slice as XlaDynamicUpdateSlice
from gtape.ops.indexing.sorting import bucketize as Bucketize
from gtape.ops.indexing.unique import unique_v2 as UniqueV2
from gtape.ops.indexing.unique import unique_with_counts_v2 as UniqueWithCountsV2

__all__ = ["Bucketize", "ImageProjectiveTransformV3", "UniqueV2", "UniqueWithCountsV2",
           "XlaDynamicUpdateSlice"]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"gtape.raw_ops has no '{name}'; it has {', '.join(__all__)}. Use the "
                         f"public function of the op")
