"""torch.signal's names: `windows`."""

from mini.signal import windows

__all__ = ["windows"]
