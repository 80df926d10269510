#!/usr/bin/env python3
"""Writes box.txt and session.txt with libsodium (pip install pynacl), independently of this crate.

Secrets are SHA-256 of labels. Run in this folder: python3 make.py
"""
import hashlib
from nacl import bindings as sodium


def derived(label, length):
    blocks = (hashlib.sha256(f"{label}{i}".encode()).digest() for i in range(length // 32 + 1))
    return b"".join(blocks)[:length]


def public(secret):
    return sodium.crypto_scalarmult_base(secret)


def box(text, nonce, peer, secret):
    return sodium.crypto_box_afternm(text, nonce, sodium.crypto_box_beforenm(peer, secret))


def count(n):
    return n.to_bytes(8, "little")


with open("box.txt", "w") as out:
    print("# NaCl boxes made by make.py with libsodium: secret key, peer's public key, shared key, nonce, text, box.", file=out)
    for i, length in enumerate([1, 16, 31, 32, 33, 63, 64, 65, 192, 640, 1088]):
        secret, peer = derived(f"sk{i}", 32), public(derived(f"peer{i}", 32))
        shared, nonce, text = sodium.crypto_box_beforenm(peer, secret), derived(f"n{i}", 24), derived(f"t{i}", length)
        sealed = sodium.crypto_box_afternm(text, nonce, shared)
        print(*(field.hex() for field in (secret, peer, shared, nonce, text, sealed)), file=out)

server, client, server_short, client_short = (derived(label, 32) for label in ("s", "c", "s'", "c'"))
server_extension, client_extension = derived("server extension", 16), derived("client extension", 16)
name = b"\x07machine\x07example".ljust(256, b"\0")
cookie_nonce, vouch_nonce = derived("cookie nonce", 16), derived("vouch nonce", 16)
cookie, message = derived("cookie", 96), derived("message", 192)
to_server = server_extension + client_extension + public(client_short)

hello = b"QvnQ5XlH" + to_server + bytes(64) + count(1)
hello += box(bytes(64), b"CurveCP-client-H" + count(1), public(server), client_short)
cookie_packet = b"RL3aNMXK" + client_extension + server_extension + cookie_nonce
cookie_packet += box(public(server_short) + cookie, b"CurveCPK" + cookie_nonce, public(client_short), server)
vouch = vouch_nonce + box(public(client_short), b"CurveCPV" + vouch_nonce, public(server), client)
initiate = b"QvnQ5XlI" + to_server + cookie + count(2)
initiate += box(public(client) + vouch + name + message, b"CurveCP-client-I" + count(2), public(server_short), client_short)
client_message = b"QvnQ5XlM" + to_server + count(3)
client_message += box(message, b"CurveCP-client-M" + count(3), public(server_short), client_short)
server_message = b"RL3aNMXM" + client_extension + server_extension + count(4)
server_message += box(message, b"CurveCP-server-M" + count(4), public(client_short), server_short)

with open("session.txt", "w") as out:
    print("# One session made by make.py with libsodium: secret keys s, c, s', c', then what they hide, then the packets.", file=out)
    fields = dict(server=server, client=client, server_short=server_short, client_short=client_short, cookie=cookie,
                  message=message, hello=hello, cookie_packet=cookie_packet, initiate=initiate,
                  client_message=client_message, server_message=server_message)
    for label, field in fields.items():
        print(label, field.hex(), file=out)
