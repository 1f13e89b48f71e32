"""Compilation of an encoder by torch.compile in place: names of parameters, copies and files stay as they are."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

_VERSIONS = 64
"""Largest number of compiled versions of one function; beyond it torch would silently stop compiling."""


class NoCompilerError(ValueError):
    """torch.compile does not work on this machine; the message says why and what to do."""


def check_compiler(backend: str = "inductor") -> None:
    """Compile a tiny function to see whether torch.compile works.

    Args:
        backend: Backend of torch.compile.

    Raises:
        NoCompilerError: It does not work; the message says why in one sentence.
    """
    try:
        torch.compile(_tiny, backend=backend)(torch.ones(2))
    except Exception as error:  # compilers fail in many ways: no g++, no headers, no space, no such backend
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise NoCompilerError(
            f"torch.compile does not work on this machine ({reason}); install a C++ compiler, or leave out --compile"
        ) from error


def _tiny(values: torch.Tensor) -> torch.Tensor:
    return values.sin() + 1


def compile_encoder(encoder: nn.Module, backend: str = "inductor") -> None:
    """Compile the encoder's calls, in training and in evaluation.

    Several backward passes go through one of its graphs, so no buffer may be donated to the first (a setting of the
    whole process); dropout draws the same as without a compiler.

    Args:
        encoder: Module; a copy of it, or a slice of a sequence, is not compiled.
        backend: Backend of torch.compile; "aot_eager" needs no compiler and brings no speed.
    """
    import torch._dynamo.config as dynamo  # noqa: PLC0415 - not before it is needed
    import torch._functorch.config as functorch  # noqa: PLC0415

    if hasattr(functorch, "donated_buffer"):
        functorch.donated_buffer = False
    if hasattr(dynamo, "recompile_limit"):  # training, guide and evaluation are separate code for every network
        dynamo.recompile_limit = max(dynamo.recompile_limit, _VERSIONS)
    options: dict[str, Any] | None = {"fallback_random": True} if backend == "inductor" else None
    # This is what Module.compile does, which would compile nothing for a plain Sequential (pytorch #150915).
    encoder._compiled_call_impl = torch.compile(encoder.forward, backend=backend, options=options)
