"""The interpreter that the bench's baseline starts for every program; lean, as it would be.

Usage: interpreter CONFIGURATION DESCRIPTOR. The first as `zygote_process.configuration` returns it,
in JSON; the second is where the report goes.
"""

import fcntl
import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":  # started with -I, which leaves the script's folder out of sys.path
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sandbox.fork_server import guest, zygote
from sandbox.kernel import confine, landlock


def main() -> None:
    """Be the interpreter: import, confine, and run the program that comes on descriptor 0."""
    config = json.loads(sys.argv[1])
    world = zygote._world(config)
    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what the prelude prints and reports
    zygote.run_prelude(world, config, lambda _: None)
    os.dup2(output, 1)
    readable = zygote._readable_paths(config["readable_paths"])
    os.dup2(int(sys.argv[2]), 3)
    abi = landlock.abi()
    ruleset = None
    if abi:  # above the low descriptors, which confine() gives their places
        ruleset = fcntl.fcntl(landlock.create_ruleset(readable, abi), fcntl.F_DUPFD, 10), abi
    # Libraries import parts of themselves late, perhaps from a folder of root's alone.
    has_uid = os.geteuid() == 0 and not config["has_libraries"]
    uid = config["first_uid"] if has_uid else None
    program = bytes.fromhex(config["filter"])
    confine.apply(confine.prepare(tuple(map(tuple, config["rlimits"])), uid, ruleset, program))
    guest.main(world)


if __name__ == "__main__":
    main()
