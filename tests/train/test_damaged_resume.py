"""`demo gpt --resume` with a damaged checkpoint says how to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtape.demo import gpt
from gtape.demo.training import DemoError


def test_deleting_the_damaged_file_goes_on_from_the_one_before(tmp_path: Path) -> None:
    def options(resume: bool) -> gpt.GptOptions:
        return gpt.GptOptions(out=tmp_path, base=gpt.SMALL, eager=True, resume=resume)

    last = gpt.run(options(resume=False)).checkpoint
    before = tmp_path / "gpt-18.safetensors"
    content = last.read_bytes()
    last.write_bytes(content[:-3])
    with pytest.raises(DemoError) as error:
        gpt.run(options(resume=True))
    assert f"cannot resume: the checkpoint '{last}'" in str(error.value)
    assert f"Delete that file to go on from the one before, {before}" in str(error.value)

    last.unlink()
    resumed = gpt.run(options(resume=True))
    assert (resumed.checkpoint, last.read_bytes()) == (last, content)

    before.unlink()
    last.write_bytes(content[:-3])
    with pytest.raises(DemoError, match="No other is left: delete that file, and leave --resume"):
        gpt.run(options(resume=True))
