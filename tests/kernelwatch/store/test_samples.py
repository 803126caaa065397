"""Samples as they are stored: packed, and the same to whoever reads them."""

from __future__ import annotations

import base64
import copy
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from asv.results import Results
from asv.util import UserError

from kernelwatch.project import ROOT
from kernelwatch.store import reading, samples, storing
from kernelwatch.store.reading import UnreadableError

#: What asv stored of a commit on a GPU before samples were packed.
STORED = ROOT / "results" / "nvidia-h200" / "a0cc781a-virtualenv-py3.json"


NAME = "time_kernel.Add.time_back_to_back"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The content of that file."""
    found: dict[str, Any] = json.loads(STORED.read_bytes())
    return found


def test_nothing_is_lost(document: dict[str, Any]) -> None:
    """A time and its samples stay within what the clock resolves; all else is the same, a second time too."""
    found = samples.unpack(json.loads(samples.written(document)))
    places = {0, document["result_columns"].index("samples")}
    for name, row in document["results"].items():
        same = found["results"][name]
        for place, (one, other) in enumerate(zip(row, same, strict=True)):
            if place not in places:
                assert json.dumps(one) == json.dumps(other), (name, place)
            elif one is not None:
                assert other == [each if each is None else pytest.approx(each, rel=1e-7, nan_ok=True) for each in one]
    assert {key: found[key] for key in found if key != "results"} == {
        key: document[key] for key in document if key != "results"
    }
    assert samples.written(found) == samples.written(samples.unpack(json.loads(samples.written(found))))


def test_asv_reads_and_writes_it(document: dict[str, Any], tmp_path: Path) -> None:
    """Its files hold the packed samples; its objects have them in their places."""
    samples.install()
    storing.write_json(str(tmp_path / "gpu" / STORED.name), document, compact=True)
    assert samples.KEY in json.loads((tmp_path / "gpu" / STORED.name).read_bytes())
    found = Results.load(str(tmp_path / "gpu" / STORED.name))
    was = Results.load(str(STORED))
    name = "time_transpose.Transpose.time_back_to_back"
    for one, other in zip(found.get_result_samples(name, []), was.get_result_samples(name, []), strict=True):
        assert one == (other if other is None else pytest.approx(other, rel=1e-7))
    assert json.dumps(found.get_result_stats(name, [])) == json.dumps(was.get_result_stats(name, []))


@pytest.mark.parametrize("odd", [None, float("nan"), float("inf"), 0.0, -1.0, 1, "1"])
def test_what_is_no_time_is_left_as_it_is(odd: object, document: dict[str, Any]) -> None:
    """A benchmark with such a sample has its row as asv writes it."""
    row = copy.deepcopy(document["results"][NAME])
    row[document["result_columns"].index("samples")][0][0] = odd
    assert samples.pack({**document, "results": {NAME: row}})["results"] == {NAME: row}


def packed(content: object) -> str:
    """A text as `pack` makes them, of anything."""
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
    whole = samples.pack({**document, "results": {NAME: document["results"][NAME]}})
    assert samples.unpack(whole)["results"][NAME]
    with pytest.raises(ValueError, match=r"^packed_samples is not as it is written: [A-Za-z]+$"):
        samples.unpack({**whole, samples.KEY: text})
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**whole, samples.KEY: text}))
    with pytest.raises(UnreadableError, match="packed_samples is not as it is written"):
        reading.document(path)
    with pytest.raises(UserError, match="packed_samples is not as it is written"):
        samples.unpacking(lambda path: json.loads(Path(path).read_text()))(str(path))
