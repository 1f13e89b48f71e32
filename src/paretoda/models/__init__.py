"""Networks: encoders with published weights, heads, and the handling of BatchNorm statistics."""
