"""Runs a program for which some system calls fail with EPERM, as the profile of a container makes them fail.

deny.py CALL[,CALL…] PROGRAM [WORD…], on x86-64; a call is its number, `seccomp` also means the prctl of that name.
Needs root: without it a filter needs no_new_privs, which this must not set.
"""
import ctypes
import os
import struct
import sys

ALLOW, EPERM = 0x7FFF0000, 0x00050001
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
PRCTL, SET_SECCOMP, SECCOMP, X86_64 = 157, 22, 317, 0xC000003E

calls = [int(word) for word in sys.argv[1].split(",") if word]
program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, X86_64), (RETURN, 0, 0, ALLOW)]
for call in calls:
    program += [(LOAD, 0, 0, 0), (EQUAL, 0, 1, call), (RETURN, 0, 0, EPERM)]
if SECCOMP in calls:
    program += [(LOAD, 0, 0, 0), (EQUAL, 0, 3, PRCTL), (LOAD, 0, 0, 16), (EQUAL, 0, 1, SET_SECCOMP), (RETURN, 0, 0, EPERM)]
program += [(RETURN, 0, 0, ALLOW)]
if calls:
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(SET_SECCOMP, 2, ctypes.c_void_p(ctypes.addressof(head)), 0, 0) != 0:
        sys.exit("deny.py: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[2], sys.argv[2:])
