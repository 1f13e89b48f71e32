"""An encoder compiled by torch.compile, in place: names of parameters, copies and files are as before."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

_VERSIONS = 64
"""Compiled versions of one function; beyond them torch would silently compile no more."""


class NoCompilerError(ValueError):
    """torch.compile does not work on this machine; the message says why and what to do."""


def check_compiler(backend: str = "inductor") -> None:
    """Compile something tiny, or raise a NoCompilerError in one sentence.

    Args:
        backend: Of torch.compile.
    """
    try:
        torch.compile(_tiny, backend=backend)(torch.ones(2))
    except Exception as error:  # compilers fail in every way there is: no g++, no headers, no room, no such backend
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise NoCompilerError(
            f"torch.compile does not work on this machine ({reason}); install a C++ compiler, or leave out --compile"
        ) from error


def _tiny(values: torch.Tensor) -> torch.Tensor:
    return values.sin() + 1


def compile_encoder(encoder: nn.Module, backend: str = "inductor") -> None:
    """From now on the encoder's calls run compiled code, in training and in evaluation.

    Several backward passes go through one of its graphs, so no buffer is given away in the first (this is set for the
    whole process); dropout draws as it does without a compiler.

    Args:
        encoder: a module; a copy of it, or a slice of a sequence, is not compiled.
        backend: Of torch.compile; "aot_eager" needs no compiler and is no faster than none.
    """
    import torch._dynamo.config as dynamo  # noqa: PLC0415 - not before it is needed
    import torch._functorch.config as functorch  # noqa: PLC0415

    if hasattr(functorch, "donated_buffer"):
        functorch.donated_buffer = False
    if hasattr(dynamo, "recompile_limit"):  # training, guide, evaluation: each is code of its own, for every network
        dynamo.recompile_limit = max(dynamo.recompile_limit, _VERSIONS)
    options: dict[str, Any] | None = {"fallback_random": True} if backend == "inductor" else None
    # What Module.compile does; but of a plain Sequential that would compile nothing (pytorch #150915).
    encoder._compiled_call_impl = torch.compile(encoder.forward, backend=backend, options=options)
