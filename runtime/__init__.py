"""Device shims: one file per device, in the order in which a device is used. Nothing here imports anything of mini."""
