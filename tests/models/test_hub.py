"""Weights by path, folder or name at the hub: from the cache without a network, from a hub, or one sentence."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from torch import nn

from paretoda.errors import BackboneError
from paretoda.models.backbones import make_backbone
from paretoda.models.backbones.resnet import resnet18
from paretoda.models.weights import find_folder, find_weights, parse_hub_name, pin_name

constants = pytest.importorskip("huggingface_hub.constants")
SHA = "a" * 40


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def offline(cache, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return cache


def put(cache, repository, name, content):
    """A file in the cache, as huggingface_hub lays it out."""
    place = cache / f"models--{repository.replace('/', '--')}"
    (place / "refs").mkdir(parents=True, exist_ok=True)
    (place / "refs" / "main").write_text(SHA)
    file = place / "snapshots" / SHA / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("timm/resnet50.tv_in1k", ("timm/resnet50.tv_in1k", None, None)),
        ("hub:timm/resnet50.tv_in1k", ("timm/resnet50.tv_in1k", None, None)),
        ("hub:a/b@v1/sub/w.bin", ("a/b", "v1", "sub/w.bin")),
        ("a/b@main", ("a/b", "main", None)),
    ],
)
def test_names_at_the_hub(text, parts):
    found = parse_hub_name(text)
    assert (found.repository, found.revision, found.file) == parts


@pytest.mark.parametrize("text", ["w.pth", "folder/w.pth", "./a/b", "../a", "/a/b", "a/b/c", "~/a", ""])
def test_paths_are_no_names(text):
    assert parse_hub_name(text) is None


def test_a_wrong_name_at_the_hub_gives_one_sentence():
    with pytest.raises(BackboneError, match="write hub:owner/name"):
        parse_hub_name("hub:nothing")


def test_a_folder_has_one_file_of_weights(tmp_path):
    with pytest.raises(BackboneError, match="has no file of weights"):
        find_weights(str(tmp_path))
    (tmp_path / "one.pth").touch()
    assert find_weights(str(tmp_path)) == tmp_path / "one.pth"
    (tmp_path / "two.bin").touch()
    with pytest.raises(BackboneError, match=r"several files of weights \(one.pth, two.bin\); name one"):
        find_weights(str(tmp_path))
    (tmp_path / "pytorch_model.bin").touch()
    assert find_weights(str(tmp_path)).name == "pytorch_model.bin"
    (tmp_path / "model.safetensors").touch()
    assert find_weights(str(tmp_path)).name == "model.safetensors"


def test_what_is_in_the_cache_needs_no_network(offline):
    file = put(offline, "timm/resnet18.tv_in1k", "model.safetensors", b"x")
    for text in ("timm/resnet18.tv_in1k", "hub:timm/resnet18.tv_in1k/model.safetensors"):
        found = find_weights(text)
        assert found == file
        assert pin_name(text, found) == f"hub:timm/resnet18.tv_in1k@{SHA}/model.safetensors"
        assert find_weights(pin_name(text, found)) == file
    put(offline, "me/net", "config.json", b"{}")
    put(offline, "me/net", "model.safetensors", b"x")
    assert find_folder("me/net") == offline / "models--me--net" / "snapshots" / SHA
    assert pin_name("me/net", find_folder("me/net")) == f"me/net@{SHA}"
    assert find_folder(f"me/net@{SHA}") == find_folder("me/net")


def test_a_local_path_is_written_down_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.pth").touch()
    assert pin_name("w.pth", find_weights("w.pth")) == str(tmp_path / "w.pth")


def test_a_failed_download_says_which_file_to_put_where(offline):
    with pytest.raises(BackboneError) as error:
        find_weights("timm/resnet50.tv_in1k")
    text = str(error.value)
    assert "get model.safetensors of https://huggingface.co/timm/resnet50.tv_in1k" in text
    assert "give --backbone-weights PATH" in text
    assert str(offline / "models--timm--resnet50.tv_in1k") in text
    assert "\n" not in text
    put(offline, "me/half", "config.json", b"{}")
    with pytest.raises(BackboneError, match=r"put config\.json, preprocessor_config\.json and model\.safetensors of"):
        find_folder("me/half")


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as one repository needs."""

    files: dict[str, bytes]
    asked: list[str]

    def do_GET(self):
        self.asked.append(self.path)
        if "/tree/" in self.path:
            found = [{"type": "file", "path": name, "size": len(c), "oid": SHA} for name, c in self.files.items()]
            self.send(json.dumps(found).encode())
        elif self.path.startswith("/api/models/"):
            siblings = ", ".join(f'{{"rfilename": "{name}"}}' for name in self.files)
            self.send(f'{{"id": "me/net", "sha": "{SHA}", "siblings": [{siblings}]}}'.encode())
        else:
            self.send(self.files.get(self.path.partition("/resolve/")[2].partition("/")[2]))

    do_HEAD = do_GET  # noqa: N815 - its name is asked for

    def send(self, content):
        self.send_response(404 if content is None else 200)
        if content is None:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("X-Repo-Commit", SHA)
        self.send_header("ETag", f'"{hash(content) & 2**63 - 1:x}"')
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content or b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def hub(cache, monkeypatch):  # noqa: ARG001 - the cache is not the user's
    """A hub of this process, and huggingface_hub that asks it."""
    handler = type("OneHub", (Hub,), {"files": {}, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    yield handler
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_name_is_downloaded_once(hub, cache, tmp_path):
    network = resnet18(classes=3)
    torch.save(network.state_dict(), tmp_path / "w.pth")
    content = (tmp_path / "w.pth").read_bytes()
    hub.files.update({"README.md": b"no", "pytorch_model.bin": content, "other.pth": content})
    encoder = make_backbone("resnet18", (3, 32, 32), "me/net")
    assert torch.equal(encoder.state_dict()["layer4.1.conv2.weight"], network.state_dict()["layer4.1.conv2.weight"])
    assert not list(cache.rglob("README.md"))
    before = len(hub.asked)
    make_backbone("resnet18", (3, 32, 32), "hub:me/net/pytorch_model.bin")
    assert len(hub.asked) == before
    assert find_weights("hub:me/net/other.pth").name == "other.pth"
    with pytest.raises(BackboneError, match=r"me/net/absent\.pth"):
        find_weights("hub:me/net/absent.pth")


def test_a_repository_without_weights_is_told(hub):
    hub.files["README.md"] = b"no"
    with pytest.raises(BackboneError, match="no weights there, or no network"):
        find_weights("me/net")


def test_weights_of_another_network_are_refused(hub, tmp_path):
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "w.pth")
    hub.files["pytorch_model.bin"] = (tmp_path / "w.pth").read_bytes()
    with pytest.raises(ValueError, match="holds the weights of another model"):
        make_backbone("resnet18", (3, 32, 32), "me/net")


def test_without_the_extra_one_sentence_names_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(BackboneError, match=r'pip install "paretoda\[hub\]", or download it'):
        find_weights("timm/resnet50.tv_in1k")
    assert Path("timm/resnet50.tv_in1k").exists() is False
