"""Programs as people in chats write them: no policy should refuse these for their words or names.

They hold the words that careless patterns hit: `print`, `id`, `with`, `file`, `object`, `open`.
"""

BENIGN = (
    "2+2",
    "2 ** 100 % 97",
    "math.sqrt(144) + math.pi",
    "x = 5\ny = 7\nprint(x * y, x / y)",
    "round(1250 * 1.19, 2)",
    "sum(n for n in range(1, 101) if n % 3 == 0)",
    "[n ** 2 for n in range(10)]",
    "for i in range(3):\n    print(i, end=' ')",
    "import math\nmath.factorial(20)",
    "from math import sin, cos, radians\nprint(sin(radians(30)), cos(radians(60)))",
    "import cmath\ncmath.sqrt(-1)",
    "import decimal\ndecimal.getcontext().prec = 40\nprint(decimal.Decimal(2).sqrt())",
    "from decimal import Decimal\nprint(Decimal('0.1') + Decimal('0.2'))",
    "import fractions\nfractions.Fraction(1, 3) + fractions.Fraction(1, 6)",
    "import statistics\ndata = [2, 4, 4, 5, 7, 9]\n"
    "print(statistics.mean(data), statistics.stdev(data))",
    "import random\nrandom.seed(7)\nrandom.choice(['heads', 'tails'])",
    "import datetime\n(datetime.date(2026, 12, 25) - datetime.date(2026, 11, 29)).days",
    "dt.datetime.strptime('2026-01-31', '%Y-%m-%d').strftime('%A')",
    "import itertools\nlist(itertools.permutations('abc', 2))",
    "from functools import reduce, lru_cache\nreduce(lambda a, b: a * b, range(1, 10))",
    "from collections import Counter, defaultdict, deque, namedtuple\n"
    "Counter('mississippi').most_common(2)",
    "import json\njson.dumps({'id': 7, 'name': 'Ada', 'type': 'object'}, indent=2)",
    "re.findall(r'\\d+', 'id 12, file 345')",
    "import bisect, heapq, array\nbisect.bisect([1, 3, 5], 4)",
    "import numbers, operator\nisinstance(3, numbers.Integral), operator.add(2, 3)",
    "import string\nstring.ascii_lowercase[::-1]",
    "text = 'print this with care: the system opens a file, an object, a process'\n"
    "len(text.split())",
    "def fib(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n"
    "    return a\nfib(100)",
    "def is_prime(n):\n    return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))\n"
    "print([n for n in range(50) if is_prime(n)])",
    "loan, rate, months = 200000, 0.045 / 12, 360\n"
    "payment = loan * rate / (1 - (1 + rate) ** -months)\nprint(f'{payment:,.2f}')",
    "open_price, close_price, profile, reopened = 12.5, 13.1, 'os', True\n"
    "evaluation = (close_price - open_price) / open_price * 100\nprint(f'{evaluation:.1f}%')",
    "class Account:\n    balance = 0\n    def deposit(self, amount):\n"
    "        self.balance += amount\n"
    "        return self\nAccount().deposit(50).balance",
    "try:\n    result = 1 / 0\nexcept ZeroDivisionError as error:\n"
    "    print('cannot divide:', error)\n"
    "finally:\n    print('done')",
    "while True:\n    break\nelse:\n    pass\nassert not None\nid(3) == id(3)",
    "words = 'the cat sat on the mat'.title().split()\nprint(sorted(words, key=len, reverse=True))",
    "matrix = [[1, 2], [3, 4]]\nprint(*map(list, zip(*matrix)), sep='\\n')",
    "input_value = 17\nexecuted = bin(input_value)[2:].zfill(8)\nprint(executed, hex(255), oct(8))",
    "globals_count = localsum = 3\nsystems = {'password': 'secret', 'host': 'local'}\n"
    "print(len(systems), globals_count + localsum)",
    "point = (3, 4)\nmatch point:\n    case (0, 0):\n        print('origin')\n    case (x, y):\n"
    "        print(abs(complex(x, y)))",
    "stack = [3, 1, 2]\nstack.append(4)\nstack.extend([5, 6])\nstack.insert(0, 7)\nstack.sort()\n"
    "stack.reverse()\nstack.pop()\nstack.remove(4)\nstack.index(3), stack.count(2), stack.copy()",
    "ages = {'Ada': 36}\nages.update(Bob=7)\nages.setdefault('Cy', 1)\n"
    "for name, age in sorted(ages.items()):\n    print(name, age, ages.get(name), end=' ')\n"
    "ages.keys(), ages.values(), ages.clear()",
    "line = ' Hello, World '\nprint(line.strip().lower().replace('l', 'L'), line.upper())\n"
    "print('-'.join(line.split(',')), line.find('W'), line.startswith(' '), line.endswith('d'))\n"
    "print('7'.rjust(3), '7'.ljust(3), 'ab'.center(6), '12'.isdigit(), '{} {}'.format(1, 2))",
    "seen = set()\nseen.add(3)\nseen.discard(4)\n"
    "seen.union({5}), seen.intersection({3}), seen.issubset({3})",
    "math.gcd(12, 18), math.log(100, 10), math.floor(2.7), math.ceil(2.1), math.comb(5, 2), math.e",
    "today = dt.date(2026, 11, 29)\ntoday.year, today.month, today.weekday(), today.isoformat()\n"
    "(today + dt.timedelta(days=45)).strftime('%d.%m.%Y')",
    "random.randint(1, 6), random.shuffle([1, 2]), random.sample(range(9), 2), random.random()",
    "m = re.search(r'(?P<year>\\d{4})', 'in 2026')\n"
    "m.group('year'), m.start(), re.sub('a', 'b', 'banana')",
    "z = 3 + 4j\n"
    "z.real, z.imag, z.conjugate(), (255).bit_length(), (0.5).as_integer_ratio(), float('inf')",
    "a = {1, 2, 3} & {2, 3, 4}\nb = frozenset(a) | {9}\nprint(a, max(b), min(b), any(b), all(b))",
    "gen = (c.upper() for c in 'sys' if c.isalpha())\n"
    "print(next(gen), list(gen), isinstance(gen, object))",
    "print(bytes(range(65, 70)).decode(), 'é'.encode('utf-8'), chr(128512), ord('A'))",
)
