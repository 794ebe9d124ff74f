"""The parts of ``longshore.zenml_orchestrator``."""
