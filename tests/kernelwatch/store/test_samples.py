"""Packed samples, as files of three days have them: the same to whoever reads them."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asv.results import Results
from asv.util import UserError

from kernelwatch.project import ROOT
from kernelwatch.store import reading, rows, samples
from kernelwatch.store.reading import UnreadableError

#: What was stored of a commit on a GPU, packed.
STORED = ROOT / "results" / "nvidia-h200" / "cef6051f-virtualenv-py3.json"


NAME = "time_kernel.Add.time_back_to_back"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The content of that file."""
    found: dict[str, Any] = json.loads(STORED.read_bytes())
    return found


def test_asv_reads_it(document: dict[str, Any]) -> None:
    """Its objects have samples in their places: their medians and quartiles are those that are stored."""
    samples.install()
    found, whole = Results.load(str(STORED)), samples.unpack(document)
    names = [name for name in document["results"] if ".time_" in name]
    count = 0
    for name in names:
        assert rows.read(document, name).get("samples") is None
        row = rows.read(whole, name)
        for value, each, low, high in zip(
            row["result"], row["samples"], row["stats_q_25"], row["stats_q_75"], strict=True
        ):
            if each:
                count += len(each)
                assert np.median(each) == pytest.approx(value, rel=1e-7)
                assert np.quantile(each, (0.25, 0.75)) == pytest.approx([low, high], rel=1e-4)
        assert [each for each in row["samples"] if each] == [
            each for each in found.get_result_samples(name, row["params"]) if each
        ]
    assert count > 5 * len(names)


def packed(content: object) -> str:
    """A text as they were made, of anything."""
    return base64.b85encode(zlib.compress(json.dumps(content).encode())).decode()


HOSTILE: dict[str, object] = {
    "no text": 1,
    "no letters": "\n",
    "not compressed": base64.b85encode(b"{}").decode(),
    "cut short": packed({NAME: [None] * 4})[:-5],
    "a list": packed([]),
    "fewer configurations": packed({NAME: [None]}),
    "no numbers": packed({NAME: [[0, 1, "1", 0, 0, 0, 0]] * 4}),
    "no samples": packed({NAME: [[0, 1, 0, 0, 0, 0]] * 4}),
    "more than may be": base64.b85encode(zlib.compress(b"[" * (samples.LARGEST + 1))).decode(),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile(text: object, document: dict[str, Any], tmp_path: Path) -> None:
    """Whatever stands there, one line says that it is not as it is written."""
    whole = {**document, "results": {NAME: document["results"][NAME]}}
    with pytest.raises(ValueError, match=r"^packed_samples is not as it is written: [A-Za-z]+$"):
        samples.unpack({**whole, samples.KEY: text})
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**whole, samples.KEY: text}))
    with pytest.raises(UnreadableError, match="packed_samples is not as it is written"):
        reading.document(path)
    with pytest.raises(UserError, match="packed_samples is not as it is written"):
        samples.unpacking(lambda path: json.loads(Path(path).read_text()))(str(path))
