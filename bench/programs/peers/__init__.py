"""The tools that workloads run on, a file each; see `bench.programs.tools`."""
