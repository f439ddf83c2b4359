"""Programs of every stage as text: printed, parsed, verified. Above codegen, whose order of loops it prints."""
