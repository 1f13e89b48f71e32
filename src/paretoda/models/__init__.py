"""Networks: encoders with named public weights, and the choice of BatchNorm statistics."""
