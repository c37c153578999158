"""Runs a program in a chroot as under Linux 4.18, where the system calls of Linux 5.1 and later do not exist.

    python old_kernel.py ROOT PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

FIRST_NEW = 424
"""Since then, system calls have the same numbers on all architectures."""
LOAD, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x35, 0x06
ENOSYS, ALLOW = 0x0005_0026, 0x7FFF_0000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def main() -> None:
    _, root, *command = sys.argv
    os.chroot(root)
    os.chdir("/")
    rows = [(LOAD, 0, 0, 0), (JUMP_IF_AT_LEAST, 0, 1, FIRST_NEW), (RETURN, 0, 0, ENOSYS), (RETURN, 0, 0, ALLOW)]
    program = Program(len(rows), b"".join(struct.pack("HBBI", *row) for row in rows))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    os.execve(command[0], command, {"HOME": "/root"})


if __name__ == "__main__":
    main()
