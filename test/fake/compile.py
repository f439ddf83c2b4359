"""What the fake drivers run to compile kernels: `python compile.py LANGUAGE KEPT SOURCE OUTPUT`.

SOURCE, a file, becomes the shared library OUTPUT of the emulation.
Libraries are kept in the folder KEPT for the next time.
"""

import hashlib
import os
import shutil
import site
import sys


def compiled(text: str, language: str) -> bytes:
  site.main()  # with python -S, which starts in 10 ms, NumPy is not to be found before
  sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
  from runtime.base import DeviceError
  from runtime.emulate import build

  try:
    return build(text, language)
  except DeviceError as e:
    sys.exit(str(e))


language, kept, source, output = sys.argv[1:]
with open(source) as f:
  text = f.read()
path = os.path.join(kept, hashlib.sha1(f"{language} {text}".encode()).hexdigest())
if not os.path.exists(path):
  data = compiled(text, language)
  temporary = f"{path}.{os.getpid()}"
  with open(temporary, "wb") as f:
    f.write(data)
  os.rename(temporary, path)
shutil.copyfile(path, output)
