"""Masks secrets in text: values of names like password, secret, token or key, and user info in URIs.

In doubt a word is masked. Ordinary messages stay unchanged: a masked value follows a name and ``=`` or ``:``, or
precedes the ``@`` of a URI.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "***"
_SECRET: Final = frozenset(
    (
        *("password", "passwd", "passphrase", "pwd", "secret", "token", "key", "credential", "authorization"),
        *("apikey", "accesskey", "secretkey"),
    )
)
_PLURAL: Final = frozenset(("secrets", "tokens", "keys", "credentials"))
_SIGNED: Final = frozenset(("sig", "signature"))
"""Secret only as parameters of a URI, because rows have a column `signature`."""
_CLASS: Final = re.compile(r"(Error|Exception|Warning)$")
"""``KeyError: ...`` is no key."""
_PLACEHOLDER: Final = re.compile(r"[A-Z](,[A-Z])*|\.\.\.")
_VALUE_WORD: Final = re.compile(r"VALUE\b")
"""Placeholder of a value in usage messages."""
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_QUOTED: Final = r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'"
# A run of marks is matched from its start only: from each mark, the cost would be quadratic.
_MARKS: Final = r"""["']?(?<![,;)\]}])[,;)\]}]+["']?(?:\s|$)"""
_END: Final = rf"""(?=\\?["']?(?:\s|$)|{_MARKS}|["'][,;)\]}}]|,\s|[,;][\w.-]+[=:]|&[\w.-]+=|%26|\#)"""
_WORD: Final = rf"[^\s]+?{_END}"
# Further words, up to the next option, quote, mark, or name of another value.
_MORE: Final = r"""(?:[ ](?![-"'(\[{|])(?![\w.-]+\s?[=:])(?!\w+://)[^\s"',;)\]}]+)*"""
_VALUE: Final = re.compile(rf"""\\?(?:{_QUOTED})|(?:Bearer |Basic )?{_WORD}{_MORE}""", re.IGNORECASE)
_NAMED: Final = re.compile(
    r"""(?:(?P<uri>[?&]|(?<=%3F)|(?<=%26))|(?<![\w.-]))(?P<name>["']?[\w.-]+\\?["']?)"""
    r"""(?P<equals>\s*(?:=|%3D)\s*|\s*:\s+|:(?=["']))""",
    re.IGNORECASE,
)
_USER: Final = re.compile(
    r"""
    # A run of scheme characters is matched as a whole: from each character, the cost would be quadratic. A scheme
    # begins with a letter at the beginning of a word.
    (?<![a-z0-9+.-])(?=(?:(?<!\w)|[a-z0-9+.-]*[+.-])[a-z])
    (?P<scheme>[a-z0-9+.-]++(?:://|%3A%2F%2F|:/(?=[^\s/@]+:)))  # A path has lost a slash.
    (?:
        (?:[^\s/?\#"'<>]|'(?=[^\s,;]{,200}@)){1,2000}(?:@|%40)            # All before the last @ of the authority.
      | [^\s/?\#"'<>:@]{1,200}:(?![0-9]+(?:/|,))[^\s"'<>]{,2000}(?:@|%40)  # A password with a slash in it.
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)


def masked(text: str) -> str:
    """The text with `MASK` in place of each secret."""
    if "@" in text or "%40" in text:
        text = _USER.sub(rf"\g<scheme>{MASK}@", text)
    done: list[str] = []
    begin = end = 0
    while (named := _NAMED.search(text, end)) is not None:
        end = named.end()
        value = _VALUE.match(text, end) if _is_secret(named) and not _VALUE_WORD.match(text, end) else None
        if value is not None and not _PLACEHOLDER.fullmatch(value[0]):
            quote = value[0][0] if value[0][0] in "\"'" else ""
            done.append(f"{text[begin:end]}{quote}{MASK}{quote}")
            begin = end = value.end()
    return "".join([*done, text[begin:]])


def _is_secret(named: re.Match[str]) -> bool:
    name = named["name"].strip("\"'\\")
    parts = [part.lower() for part in _PARTS.findall(name)]
    if _CLASS.search(name) or not parts:
        return False
    if named["name"][-1] not in "\"'" and ":" in named["equals"]:
        return parts[-1] in _SECRET  # In running text, the last part of a name decides.
    in_uri = named["uri"] is not None
    return not (_SECRET | _PLURAL).isdisjoint(parts) or (in_uri and not _SIGNED.isdisjoint(parts))
