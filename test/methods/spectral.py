"""Windows, and transforms of pieces of a signal; the transforms themselves are in test_fft.py."""

from methods import normal

INPUTS = {"signal": normal(2, 50), "bell": lambda r: (r.random(12) + 0.2).astype("float32")}

ROWS = """
f: signal.stft(12,window=bell,return_complex=True)   signal.stft(12,5,window=bell,center=False,normalized=True,return_complex=False)   signal.stft(12,window=bell,return_complex=True).istft(12,window=bell)   signal.stft(16,4,12,bell,return_complex=True).istft(16,4,12,bell,length=40)
(signal+1j*signal.cos()).stft(12,window=bell,return_complex=True)   T.hann_window(9)   T.hann_window(9,False)   T.hamming_window(8)   T.hamming_window(8,True,0.6,0.4)   T.blackman_window(7)   T.bartlett_window(6)   T.bartlett_window(6,False)   T.kaiser_window(9)   T.kaiser_window(9,False,5.0)   T.hann_window(1)   T.hann_window(0)   T.hann_window(4,dtype=F64)
"""

MISTAKES = """
signal.stft(12)           !   stft: return_complex is to be told
signal.stft(60, center=False, return_complex=True)   !   stft: x has fewer samples than a piece, 60
signal.istft(12)          !   istft: x is not complex
T.hann_window(-1)         !   hann_window: -1 elements
T.hamming_window(-1)      !   hamming_window: -1 elements
T.blackman_window(-1)     !   blackman_window: -1 elements
T.bartlett_window(-1)     !   bartlett_window: -1 elements
T.kaiser_window(-1)       !   kaiser_window: -1 elements
"""
