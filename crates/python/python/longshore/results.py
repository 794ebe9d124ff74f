"""What operations return."""

from typing import NamedTuple


class Output(NamedTuple):
    """The result of a command in a container."""

    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """The standard output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode(errors="replace")
