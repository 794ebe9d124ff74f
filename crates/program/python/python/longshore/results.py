"""What operations return."""

from typing import NamedTuple


class Output(NamedTuple):
    """The result of a command in a container."""

    #: The exit code of the command.
    exit_code: int
    #: The standard output.
    stdout: bytes
    #: The standard error.
    stderr: bytes

    @property
    def text(self) -> str:
        """The standard output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode(errors="replace")
