"""The one place that holds the version. As `tapegrad.version` it answers what programs ask of `torch.version`."""

__version__ = "0.1.0"

cuda: None = None
hip: None = None
debug = False
