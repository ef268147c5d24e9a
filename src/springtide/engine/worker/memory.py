"""Memory that a worker has let go is kept for its next update, instead of being given back to the system each time.

An update allocates and frees arrays of some megabytes, again and again. By default glibc gives such memory back at
once, and the system clears every page anew when it is asked for again.
"""

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""The numbers of glibc's settings, from its `malloc.h`."""
KEPT_BYTES = 64 << 20
"""The most that a process keeps at the end of its heap."""
HEAP_BYTES = 32 << 20
"""What is smaller comes from the heap. It is the largest value that glibc takes."""


def keep_freed_memory() -> bool:
    """True if the C library has such settings; another one than glibc is left as it is."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)) and bool(mallopt(M_MMAP_THRESHOLD, HEAP_BYTES))
