"""The parts of ``generate_reference.py``."""
