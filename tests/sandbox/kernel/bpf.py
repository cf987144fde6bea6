"""A classic BPF machine, as seccomp uses it: linux/bpf_common.h and kernel/seccomp.c.

Written from the kernel's description, not from the filter builder, which it is there to judge.
"""

import struct

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
ERRNO = 0x00050000

LOAD_WORD, JUMP, RETURN = 0x20, 0x05, 0x06
COMPARISONS = {
    0x15: lambda a, k: a == k,  # JEQ
    0x25: lambda a, k: a > k,  # JGT
    0x35: lambda a, k: a >= k,  # JGE
    0x45: lambda a, k: a & k != 0,  # JSET
}
AND, OR = 0x54, 0x44


def decode(program: bytes) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack("=HBBI", program))


def seccomp_data(number: int, token: int, arguments: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return `struct seccomp_data` as 32-bit words; negative integers as the kernel holds them."""
    padded = (*arguments, *[0] * (6 - len(arguments)))
    packed = struct.pack(
        "=IIQ6Q", number % 2**32, token, 0, *(argument % 2**64 for argument in padded)
    )
    return struct.unpack("=16I", packed)


def run(code: list[tuple[int, int, int, int]], data: tuple[int, ...]) -> tuple[int, int]:
    """Return the verdict and the number of instructions that it took."""
    accumulator = position = steps = 0
    while True:
        operation, if_true, if_false, operand = code[position]  # IndexError: it ran off the end
        position += 1
        steps += 1
        if operation == RETURN:
            return operand, steps
        if operation == LOAD_WORD:
            assert operand % 4 == 0
            accumulator = data[operand // 4]
        elif operation == JUMP:
            position += operand
        elif operation == AND:
            accumulator &= operand
        elif operation == OR:
            accumulator |= operand
        elif operation in COMPARISONS:
            position += if_true if COMPARISONS[operation](accumulator, operand) else if_false
        else:
            raise AssertionError(f"no such operation here: {operation:#x}")
