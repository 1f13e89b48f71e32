"""A compiled encoder is the same encoder, with the same names, and a machine that cannot compile says so."""

import copy

import pytest
import torch
from training.test_accumulate import made, trained

from paretoda.models.memory import NoCompilerError, check_compiler, compile_encoder
from paretoda.schemes import ParetoDA

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


@pytest.fixture(autouse=True)
def _settings_of_the_process():
    """Compiling sets two of torch's switches for good; other tests find them as they were."""
    import torch._dynamo.config as dynamo
    import torch._functorch.config as functorch

    torch.compiler.reset()
    with functorch.patch(donated_buffer=functorch.donated_buffer), dynamo.patch(recompile_limit=dynamo.recompile_limit):
        yield
    torch.compiler.reset()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(("voting", "bn"), [("all", "joint"), ("last", "per-domain")])
def test_a_compiled_encoder_trains_to_the_same_weights(backend, voting, bn):
    plain, step = (made("dann", ParetoDA, voting=voting, bn=bn, dropout=0.3, norm=True) for _ in range(2))
    names = list(step.modules().state_dict())
    compile_encoder(step.model.encoder, backend)
    with torch.enable_grad():
        assert "Compiled" in type(step.model.encoder(torch.randn(4, 5).double()).grad_fn).__name__
    step.model.load_state_dict(plain.model.state_dict())
    expected, mine = trained(plain)[0], trained(step)[0]
    assert torch.allclose(mine, expected, rtol=0, atol=1e-6)
    assert list(step.modules().state_dict()) == names
    again = copy.deepcopy(step.model)
    assert again.encoder._compiled_call_impl is None, "a copy, for prediction, is not compiled"


def test_a_machine_without_a_compiler_says_so_in_one_sentence(monkeypatch):
    def broken(*_args, **_settings):
        raise RuntimeError("Compiler: g++ is not found.\nmore\nlines")

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(
        NoCompilerError, match=r"^torch.compile does not work .*\(Compiler: g\+\+ is not found\); .*--compile$"
    ):
        check_compiler()
