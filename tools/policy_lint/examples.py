"""Example programs, benign and hostile, to show whom a changed word lets in or keeps out."""

from tools.policy_lint.benign import BENIGN

_HOSTILE = {
    "read the accounts": "'/etc/passwd'",
    "read the secret": "'/secrets/config.json'",
    "read the environment": "'/proc/self/environ'",
    "run a shell command": "text = 'os.system'",
    "list the environment": "text = 'os.environ'",
    "start a process": "text = 'subprocess.Popen'",
    "call native code": "text = 'ctypes.CDLL'",
    "load a pickle": "text = 'pickle.loads'",
    "take a frame": "text = 'sys._getframe'",
    "list the modules": "text = 'sys.modules'",
    "open a file": "open('/etc/hostname').read()",
    "evaluate text": "eval('1 + 1')",
    "import a module by text": "'import os'",
    "open a socket": "text = 'socket.socket'",
    "walk to every class": "().__class__.__base__.__subclasses__()",
}
EXAMPLES = _HOSTILE | {f"the benign {source.splitlines()[0]!r}": source for source in BENIGN}
