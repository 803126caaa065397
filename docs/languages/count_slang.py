# pip install './ptxcount[nvcc]' && pip install --no-deps slangtorch==1.3.22
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import ptxcount

head = '[shader("compute")] [numthreads(256, 1, 1)] void twice(uint3 id: SV_DispatchThreadID, uniform float* x)'
Path("double.slang").write_text(head + " { x[id.x] *= 2; }")
slangc = Path(find_spec("slangtorch").submodule_search_locations[0], "bin", "slangc")
subprocess.run([slangc, "double.slang", "-target", "cuda", "-o", "double.cu"], check=True)
counters = ptxcount.count(Path("double.cu"), "twice", 1, 256, [np.ones(256, np.float32)])
print(ptxcount.format_counters(counters))
