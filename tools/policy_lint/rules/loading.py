r"""Mistakes for which the loader refuses the file: a running bot keeps its last good policy.

file (error): The file cannot be read as a policy
    It, or what it extends, is missing, empty, too large, no regular file, no policy, or not
    UTF-8.
    Example: a policy.yaml saved as UTF-16
    Cure: Save the file as UTF-8 without a byte order mark, under the name that was given.

yaml-syntax (error): The file is not YAML
    Some of these YAML itself would take: a line that is indented too deep silently becomes part
    of the entry above it.
    Example: - @network-io
    Cure: Align the line with its neighbours; put a value with special characters in single quotes.

yaml-feature (error): An anchor, alias, tag or second document
    These let a file mean something else than its lines say to a reviewer.
    Example: limits: *defaults
    Cure: Write the value itself.

duplicate-key (error): A field stands twice
    YAML keeps the last one only, so that the first would be lost in silence.
    Example: a second `dangerous_names:` at the end of the file
    Cure: Delete one of the two, or put their entries together.

duplicate-entry (error): An entry stands twice in one list
    Whoever deletes one of the two believes that it is gone.
    Example: - eval, and - eval again
    Cure: Delete one of the two.

unknown-key (error): A field that no policy has
    A misspelt limit is no limit.
    Example: cpu_second: 2
    Cure: Write the name as in sandbox/policy/schema.json, under the heading that it belongs to.

missing-key (error): A field is missing
    No field has a default, so that the file says all that is in force.
    Example: rlimits without cpu_seconds
    Cure: Add the field.

wrong-type (error): A value of another kind than the field takes
    Nothing is guessed from it: `010` is 8 to some readers of YAML, and `1:30` is 90.
    Example: cpu_seconds: '2'
    Cure: Write a number without quotes, a list as lines that begin with `- `, a name as text.

unknown-version (error): A version of the format that this program does not know
    For the fields of another version may mean something else.
    Example: version: 2
    Cure: Write `version: 1`, or use the program that belongs to the file.

out-of-range (error): A number that the field cannot take
    A limit of nothing, or of more than there can be, limits nothing.
    Example: cpu_seconds: 0
    Cure: Write a number within the bounds that the message names.

bad-name (error): Text that cannot be what the field holds
    It could never match anything: two names on one line, say.
    Example: - json, math
    Cure: Write one name an entry, as the message describes it.

unknown-layer (error): A layer that does not exist
    A misspelt layer would not be required.
    Example: - secomp
    Cure: Write one of landlock, namespaces, no_new_privs, rlimits, seccomp, uid, uid or landlock.

essential-layer (error): A layer without which nothing holds a program is not required
    Without rlimits, no_new_privs and seccomp nothing holds a program.
    Example: required_layers without seccomp
    Cure: Add the layer to required_layers.

unknown-syscall (error): A system call, group or condition that nobody knows
    A misspelt call would not be denied.
    Example: - ptrce
    Cure: Write the name as in syscalls.ini (groups) or seccomp.py (conditions) of sandbox/kernel/.

limits-contradict (error): Two limits contradict each other
    One of the two could never be reached, or not be kept.
    Example: cpu_seconds: 20 with wall_seconds: 8
    Cure: Change either; the finding at each says to what.

preloaded-not-allowed (error): A preloaded module that allowed_imports does not hold
    A program would reach a module that it may not import.
    Example: preloaded: {os: os}
    Cure: Add the module to allowed_imports, or delete the preloaded name.

regex-invalid (error): A blocked word is no regular expression
    Python could not search for it, or warns that its meaning will change.
    Example: - '(passwd'
    Cure: Close what is open; put a backslash before a character that is meant as itself.

regex-backspace (error): A blocked word holds a control character
    In double quotes YAML turns \b into a backspace: the word never matches.
    Example: - "\bos\b"
    Cure: Put regular expressions in single quotes.

bad-edit (error): An edit of a list that does not fit what the file extends
    A file that extends another may write `{add: [...], remove: [...]}` for a list; what is
    removed must be there.
    Example: remove: [evl]
    Cure: Write what is meant, or delete it.

word-slow (error): A blocked word that may take very long to search for
    Each word is searched for in every program, inside the bot itself, where no limit of processor
    time holds; so its structure must show that this takes linear time. Nested, adjacent and
    unanchored repetitions without a bound do not, nor do back references and conditions.
    Example: - '(\w+\s?)+;'
    Cure: Bound its repetitions, and let each begin after something that it cannot match itself.
"""
