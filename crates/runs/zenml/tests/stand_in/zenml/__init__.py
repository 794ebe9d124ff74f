"""Stands in for ZenML 0.3 in tests: the modules that a pod's program imports."""
