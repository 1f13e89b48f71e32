"""Classifiers of pixels: parallel dilated convolutions, summed, and the head that holds one or two of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ASPP(nn.Module):
    """DeepLab-v2's classifier: the sum of one 3x3 convolution with bias for each rate (Chen et al., 2018).

    Weights start as N(0, 0.01²). AdaSegNet's published code stops after its second rate; here all are summed.

    Args:
        inputs: channels of the features.
        classes: the number K of classes.
        rates: dilation, and as much padding, of each convolution.
    """

    def __init__(self, inputs: int, classes: int, rates: Sequence[int] = (6, 12, 18, 24)) -> None:
        super().__init__()
        if not rates or min(rates) < 1:
            raise ValueError(f"rates must be one or more whole numbers from 1 on, got {tuple(rates)}")
        branches = [nn.Conv2d(inputs, classes, 3, padding=rate, dilation=rate) for rate in rates]
        for branch in branches:
            nn.init.normal_(branch.weight, std=0.01)
        self.branches = nn.ModuleList(branches)

    def forward(self, features: Tensor) -> Tensor:
        """Features (n, inputs, h, w) to logits (n, K, h, w)."""
        logits: Tensor = self.branches[0](features)
        for branch in self.branches[1:]:
            logits = logits + branch(features)
        return logits

    def flat(self) -> Tensor:
        """All weights and biases as one vector, attached: what CLAN keeps apart."""
        return torch.cat([parameter.flatten() for parameter in self.parameters()])


class PixelHead(nn.Module):
    """All classifiers of a segmenter; calling it gives the logits that predict, `further` those of the others.

    One classifier for one level predicts alone. Two levels: features are [lower; last] along the channels, the main
    classifier sees the last level's only and predicts, the auxiliary one sees the lower's. Two classifiers on one level
    (CLAN): their sum z1 + z2 predicts, and `further` gives z1 and z2.

    Args:
        widths: channels of each level in the features, one or two numbers.
        classes: the number K of classes.
        rates: of each classifier's convolutions.
        classifiers: on the last level, 1 or 2; 2 only with one level.
    """

    def __init__(self, widths: Sequence[int], classes: int, rates: Sequence[int], classifiers: int = 1) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.main = ASPP(self.widths[-1], classes, rates)
        self.auxiliary = ASPP(self.widths[0], classes, rates) if len(self.widths) == 2 else None
        self.second = ASPP(self.widths[-1], classes, rates) if classifiers == 2 else None

    def forward(self, features: Tensor) -> Tensor:
        """Features (n, d, h, w) to the logits that predict, (n, K, h, w)."""
        last = features[:, -self.widths[-1] :]
        logits: Tensor = self.main(last)
        return logits if self.second is None else logits + self.second(last)

    def classifier_weights(self) -> tuple[Tensor, Tensor]:
        """All numbers of either of two classifiers, as vectors that gradients flow through."""
        if self.second is None:
            raise ValueError("this head has one classifier; CLAN needs classifiers=2")
        return self.main.flat(), self.second.flat()

    def further(self, features: Tensor) -> tuple[Tensor, ...]:
        """(), or the auxiliary classifier's logits, or those of both classifiers; each (n, K, h, w)."""
        if self.auxiliary is not None:
            return (self.auxiliary(features[:, : self.widths[0]]),)
        return () if self.second is None else (self.main(features), self.second(features))
