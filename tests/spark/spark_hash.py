"""Spark's xxhash64 in plain Python, and how to make it collide: a row's hash is the seed of its next column's."""

MASK = (1 << 64) - 1
PRIME_1, PRIME_2, PRIME_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
PRIME_4, PRIME_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
SEED = 42


def hash_long(value: int, seed: int = SEED) -> int:
    """The unsigned hash of one integer of 64 bits."""
    return hash_bytes((value & MASK).to_bytes(8, "little"), seed)


def hash_int(value: int, seed: int = SEED) -> int:
    """The unsigned hash of one integer of 32 bits."""
    return hash_bytes((value & MASK >> 32).to_bytes(4, "little"), seed)


def hash_bytes(data: bytes, seed: int = SEED) -> int:
    """The unsigned hash of a short text."""
    assert len(data) < 32, "longer ones are hashed otherwise"
    mixed, words = seed + PRIME_5 + len(data) & MASK, len(data) // 8 * 8
    for at in range(0, words, 8):
        mixed ^= _rotated(_number(data[at : at + 8]) * PRIME_2, 31) * PRIME_1 & MASK
        mixed = _rotated(mixed, 27) * PRIME_1 + PRIME_4 & MASK
    rest = data[words:]
    if len(rest) >= 4:
        mixed ^= _number(rest[:4]) * PRIME_1 & MASK
        mixed = _rotated(mixed, 23) * PRIME_2 + PRIME_3 & MASK
        rest = rest[4:]
    for byte in rest:
        mixed = _rotated(mixed ^ byte * PRIME_5 & MASK, 11) * PRIME_1 & MASK
    mixed = (mixed ^ mixed >> 33) * PRIME_2 & MASK
    mixed = (mixed ^ mixed >> 29) * PRIME_3 & MASK
    return mixed ^ mixed >> 32


def colliding_pairs(count: int) -> list[tuple[int, int]]:
    """Different pairs of integers that all have the same hash.

    All that follows the first exclusive or is a function of its result alone, so it is enough to
    choose each second number such that this result is the same.
    """
    target = _start(hash_long(0)) ^ _rotated(0, 31)
    pairs = []
    for first in range(count):
        product = (target ^ _start(hash_long(first))) * pow(PRIME_1, -1, 1 << 64) & MASK
        pairs.append((first, signed(_rotated(product, 64 - 31) * pow(PRIME_2, -1, 1 << 64) & MASK)))
    return pairs


def _start(seed: int) -> int:
    return seed + PRIME_5 + 8 & MASK


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _rotated(value: int, bits: int) -> int:
    value &= MASK
    return (value << bits | value >> (64 - bits)) & MASK


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
