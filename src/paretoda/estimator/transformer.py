"""The adapted features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from paretoda.estimator.fitting import Adapted


class ParetoDATransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Adapted):  # type: ignore[misc]
    """The encoder of an adapted model: features on which source and target look alike.

    Parameters and fitted attributes are those of `ParetoDAClassifier`. Rows are taken for the target's unless
    `sample_domain` says that they are the source's.
    """

    __metadata_request__transform = {"sample_domain": True}  # noqa: RUF012

    def transform(self, X: Any, sample_domain: Any = None) -> NDArray[np.floating[Any]]:
        """The features, shape (n, bottleneck)."""
        features = self._outputs(X, sample_domain)[0]
        return features.astype(np.float32) if getattr(X, "dtype", None) == np.float32 else features

    def fit_transform(self, X: Any, y: Any = None, sample_domain: Any = None) -> NDArray[np.floating[Any]]:
        """Fit, then transform X, each row as one of its own domain."""
        self.fit(X, y, sample_domain)
        if sample_domain is None:
            return self.transform(X)
        domain = np.ones(len(X), int) if np.ndim(sample_domain) > 1 else sample_domain
        return self.transform(X, domain)

    @property
    def _n_features_out(self) -> int:
        """For `get_feature_names_out`."""
        return self.run_.settings.bottleneck

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
