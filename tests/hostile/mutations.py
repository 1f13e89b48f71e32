"""Damage: bytes flipped, cut, doubled and spliced, and formats taken apart, changed inside and put together again."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

Mutation = Callable[[bytes, Random], bytes]

TOKENS = [
    *(b"\0", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x80\0\0\0", b"PK\x03\x04", b"PK\x01\x02"),
    *(b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"9" * 30, b"9" * 5000, b"null", b"true", b"[]", b"{}", b'""'),
    *(b"[" * 3000, b"{" * 300, b"(" * 500, b"../" * 8, b"/etc/passwd", b"\r\n", b"\n", b"\t", b" ", b"'", b'"', b"\\"),
    *(b"\x1b[2J", b"%s%n", b"cos\nsystem\n", b"\x80\x04c", b"(1000000000000,)", b"'O'", b"'|V0'", b"'<U0'", b"<f8"),
    *("é".encode(), b"\xed\xa0\x80", b"\xef\xbb\xbf", "\u202e".encode(), b"a" * 300, b"a" * 5000, b"\x9b31m"),
]
"""What readers are known to stumble over."""

JUNK: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        1,
        3,
        10**9,
        10**30,
        -(10**30),
        0.5,
        float("nan"),
        float("inf"),
        1e308,
        "",
        "x",
        "NaN",
        "9" * 50,
    ),
    *([], {}, [[]], [1], {"a": 1}, [None] * 3, "../../x", "<script>", "\x1b[31m", "\ud800", "a" * 3000, [1e300] * 3),
]
"""What stands in a field in place of what belongs there."""


def flipped(data: bytes, rng: Random) -> bytes:
    """A few bits are others."""
    changed = bytearray(data or b"\0")
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwritten(data: bytes, rng: Random) -> bytes:
    """An extreme number stands at some place."""
    form = rng.choice("bhiqBHIQ")
    bits, signed = 8 * struct.calcsize(form), form.islower()
    top = 2 ** (bits - signed)
    number = rng.choice([0, 1, top - 1, top // 2, -top if signed else top - 2])
    value = struct.pack(rng.choice("<>") + form, number)
    at = rng.randrange(max(1, len(data) - len(value)))
    return data[:at] + value + data[at + len(value) :]


def cut(data: bytes, rng: Random) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data) + 1)]


def dropped(data: bytes, rng: Random) -> bytes:
    """A piece in the middle is missing."""
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[min(end, start + 200) :]


def doubled(data: bytes, rng: Random) -> bytes:
    """A piece is there twice, perhaps somewhere else."""
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    at = rng.choice([end, rng.randrange(len(data) + 1)])
    return data[:at] + data[start : min(end, start + 4000)] + data[at:]


def inserted(data: bytes, rng: Random) -> bytes:
    """A token of the dictionary stands somewhere, in between or over what was there."""
    token, at = rng.choice(TOKENS), rng.randrange(len(data) + 1)
    return data[:at] + token + data[at + rng.choice([0, len(token)]) :]


def number_changed(data: bytes, rng: Random) -> bytes:
    """One of the numbers in a text is another."""
    starts = [k for k in range(len(data)) if data[k : k + 1].isdigit() and not data[k - 1 : k].isdigit()]
    if not starts:
        return inserted(data, rng)
    start = end = rng.choice(starts)
    while data[end : end + 1].isdigit():
        end += 1
    return data[:start] + rng.choice([b"0", b"-1", b"9" * 25, b"1e30", b"nan", b"2147483648", b"07"]) + data[end:]


PLAIN: tuple[Mutation, ...] = (flipped, overwritten, cut, dropped, doubled, inserted, number_changed)


def plainly(data: bytes, rng: Random) -> bytes:
    """One or a few of the above."""
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        data = rng.choice(PLAIN)(data, rng)
    return data


def inside_json(data: bytes, rng: Random) -> bytes:
    """The text stays JSON, and one thing in it is another, missing, or there under another name."""
    return json.dumps(_changed(json.loads(data), rng)).encode()


def _changed(value: Any, rng: Random) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key, action = rng.choice(list(value)), rng.random()
        if action < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if action < 0.2:
            return {**value, rng.choice(["x", "", "key", "\x1b"]): value[key]}
        return {**value, key: _changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at, action = rng.randrange(len(value)), rng.random()
        if action < 0.15:
            return value[:at] + value[at + 1 :]
        return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    return rng.choice(JUNK)


def inside_lines(data: bytes, rng: Random) -> bytes:
    """One of the JSON lines is another."""
    lines = data.decode().splitlines()
    at = rng.randrange(len(lines))
    lines[at] = inside_json(lines[at].encode(), rng).decode()
    return "".join(f"{line}\n" for line in lines).encode()


def inside_toml(data: bytes, rng: Random) -> bytes:
    """One of the settings has another value."""
    lines = data.decode().splitlines()
    at = rng.choice([k for k, line in enumerate(lines) if " = " in line])
    junk = rng.choice([v for v in JUNK if not isinstance(v, dict) and v is not None and v != "\ud800"])
    text = json.dumps(junk).replace("Infinity", "inf").replace("NaN", "nan").replace("null", "0").replace("\\u001b", "")
    lines[at] = f"{lines[at].partition(' = ')[0]} = {text}"
    return "".join(f"{line}\n" for line in lines).encode()


def inside_zip(data: bytes, rng: Random) -> bytes:
    """A member is damaged, and the archive around it is whole: no checksum tells."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = rng.choice(list(members))
    members[name] = plainly(members[name], rng)
    if rng.random() < 0.05:
        members[rng.choice(["../../x.npy", "/x.npy", "y.npy", " "])] = members[name]
    out = io.BytesIO()
    kind = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with zipfile.ZipFile(out, "w", kind) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return out.getvalue()


def inside_safetensors(data: bytes, rng: Random) -> bytes:
    """The header is damaged, and its length is right."""
    (size,) = struct.unpack("<Q", data[:8])
    header, rest = data[8 : 8 + size], data[8 + size :]
    header = inside_json(header, rng) if rng.random() < 0.7 else plainly(header, rng)
    return struct.pack("<Q", len(header)) + header + rest


def inside_png(data: bytes, rng: Random) -> bytes:
    """A chunk is damaged, and its checksum and length are right."""
    chunks, at = [], 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    place = rng.randrange(len(chunks))
    kind, body = chunks[place]
    if kind == b"IDAT" and rng.random() < 0.5:
        body = zlib.compress(plainly(zlib.decompress(body), rng))
    else:
        body = plainly(body, rng)
    chunks[place] = (kind, body)
    if rng.random() < 0.1:
        chunks.insert(place, rng.choice(chunks))
    parts = [struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in chunks]
    return data[:8] + b"".join(parts)
