// Metal has no float64: cast it to another type, or use a device that has it
