"""The one exception that foresay raises for failures of its own."""

from __future__ import annotations


class Error(RuntimeError):
    """A failure that ends a load or a request; its text says where, what was expected, what was found, what to do.

    ``code`` is the kind of failure: ``usage`` (an option or prompt that cannot be honoured), ``checkpoint`` (damaged,
    incomplete), ``unsupported``, ``mtp_required``, ``capacity``, ``check_failed``, ``cancelled`` or ``internal``.
    """

    def __init__(self, message: str, code: str = "internal") -> None:
        super().__init__(message, code)
        self.message = message
        self.code = code

    def __str__(self) -> str:
        return self.message
