"""A frozen backbone, whose features of an image are computed once, whoever needs them."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paretoda.data.feature_store import open_store
from paretoda.data.rows import iterate_inputs
from paretoda.data.samples import Samples
from paretoda.data.transforms import Transform
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.types import Progress

_BATCH = 16
"""Images in a batch; see `FrozenBackbone.features`."""
_LAYOUT = 1
"""Version of what the features depend on; those of another version are not read."""
_REMEMBERED = 2
"""Sets whose features stay in memory: the source and the target of a run."""


@dataclass(frozen=True, eq=False)
class FrozenBackbone:
    """A network that is not trained, and its name.

    Args:
        name: Name of the backbone.
        network: The network, whose weights must not change any more.
    """

    name: str
    network: nn.Module
    _memory: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def features(
        self,
        samples: Samples,
        transform: Transform,
        places: range | None = None,
        *,
        crops: int = 1,
        threads: int = 0,
        progress: Progress | None = None,
        what: str = "features",
    ) -> Tensor:
        """Return the features of samples in evaluation mode, from memory or the cache as far as they are there.

        The last bits of a network's output depend on the number of rows in a batch, but not on the other rows or their
        order. All batches have the same size (the last is filled up), so that the features of an image are the same in
        whatever set it is, and whether they come from the cache or not.

        Args:
            samples: The images.
            transform: Transform that the network expects.
            places: Positions of the images; None: all of them, whose features then stay in memory.
            crops: Views of each image, 1 or 10.
            threads: Threads that read ahead.
            progress: Called with the number of images that are done.
            what: What the progress is called.

        Returns:
            The features on the CPU, shape (n * crops, d), the views of an image one after the other.
        """
        facts = transform.to_json()
        key = hashlib.sha256(json.dumps([_LAYOUT, self._identity, facts, crops], sort_keys=True).encode()).hexdigest()
        chosen = range(len(samples)) if places is None else places
        digests = samples.digests(chosen)
        whole = hashlib.sha256("".join([key, *digests]).encode()).hexdigest()
        if whole in self._memory:
            return self._memory[whole]

        def encode(missing: list[int]) -> Iterator[NDArray[np.float32]]:
            index = np.array([chosen[place] for place in missing], dtype=np.int64)
            return self._encode(iterate_inputs(samples, transform, _BATCH * crops, crops, threads, index), crops)

        store = open_store(key[:32], {"backbone": self.name, "size": facts.get("size")})
        found = torch.from_numpy(store.fetch(digests, encode, progress, what)).view(len(digests) * crops, -1)
        if places is None:
            self._memory[whole] = found
            if len(self._memory) > _REMEMBERED:
                del self._memory[next(iter(self._memory))]
        return found

    def _encode(self, batches: Iterator[Tensor], crops: int) -> Iterator[NDArray[np.float32]]:
        device = next((tensor.device for tensor in self.network.state_dict().values()), torch.device("cpu"))
        for inputs in batches:
            rest = _BATCH * crops - len(inputs)
            full = torch.cat([inputs, inputs[-1:].expand(rest, *inputs.shape[1:])]) if rest else inputs
            with evaluation_mode(self.network):
                rows = self.network(full.to(device))[: len(inputs)].cpu().float()
            yield rows.reshape(len(inputs) // crops, -1).numpy()

    @cached_property
    def _identity(self) -> str:
        """Hash of the layers, the code of layers that are not torch's own, and every weight."""
        digest = hashlib.sha256(repr(self.network).encode())
        for name in sorted({type(layer).__module__ for layer in self.network.modules()}):
            file = getattr(sys.modules.get(name), "__file__", None)
            if file is not None and not name.startswith("torch."):
                with suppress(OSError):
                    digest.update(Path(file).read_bytes())
        for name, tensor in sorted(self.network.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()
