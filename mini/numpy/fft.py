"""`numpy.fft`, at once: a row is a name."""

from __future__ import annotations

import numpy as np

from mini.numpy.host import at_once

NAMES = """
fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift
"""
FFT = {name: at_once(getattr(np.fft, name)) for name in NAMES.split()}
globals().update(FFT)
