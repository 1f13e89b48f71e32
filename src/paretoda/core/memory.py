"""Memory of schemes that survives a restart: plain numbers and lists, of a scheme alone or around another."""

from __future__ import annotations

from typing import Any, cast

from paretoda.core.problem import Scheme, StatefulScheme


class PlainMemory:
    """State of a scheme whose memory has plain numbers and lists only.

    Examples:
        >>> from paretoda.schemes import DWA
        >>> isinstance(DWA(), PlainMemory), DWA().state_dict()
        (True, {})
    """

    _memory: dict[str, Any]

    def state_dict(self) -> dict[str, object]:
        """Return the memory."""
        return dict(self._memory)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        self._memory.clear()
        self._memory.update(state)


class WrapperMemory:
    """State of a scheme around another one: its own memory and the state of the wrapped scheme.

    Examples:
        >>> from paretoda.schemes import MGDA, Every
        >>> Every(MGDA()).state_dict()
        {'scheme': {}}
    """

    scheme: Scheme
    _memory: dict[str, Any]

    def state_dict(self) -> dict[str, object]:
        """Return the memory and the state of the wrapped scheme."""
        inner = self.scheme.state_dict() if isinstance(self.scheme, StatefulScheme) else {}
        return {**self._memory, "scheme": inner}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        own = dict(state)
        inner = cast("dict[str, object]", own.pop("scheme"))
        self._memory.clear()
        self._memory.update(own)
        if isinstance(self.scheme, StatefulScheme):
            self.scheme.load_state_dict(inner)
