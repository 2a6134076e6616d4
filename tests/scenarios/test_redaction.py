from __future__ import annotations

import time

import pytest

from scenarios.redaction import masked

SECRET = "hunter2"  # noqa: S105 - a made-up one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # User info.
        ("spark://user:hunter2@host:7077", "spark://***@host:7077"),
        ("s3a://KEY:hunter2@bucket/x y", "s3a://***@bucket/x y"),
        ("s3a://hunter2@bucket/x", "s3a://***@bucket/x"),
        ("s3a://KEY:a/hunter2@bucket/x", "s3a://***@bucket/x"),
        ("spark://u:p@hunter2@host:1", "spark://***@host:1"),
        ("spark://user:1234@hunter2@host", "spark://***@host"),
        ("spark://user:'hunter2'@host", "spark://***@host"),
        ("spark%3A%2F%2Fuser%3Ahunter2%40host", "spark%3A%2F%2F***@host"),
        ("s3a:/K:hunter2@b/x", "s3a:/***@b/x"),
        # Parameters.
        ("https://h/x?token=hunter2&y=1", "https://h/x?token=***&y=1"),
        ("https://h/x?y=1&sig=hunter2#a", "https://h/x?y=1&sig=***#a"),
        ("https://h/x?password%3Dhunter2", "https://h/x?password%3D***"),
        ("sc://host:15002/;token=hunter2;user_id=x", "sc://host:15002/;token=***;user_id=x"),
        ("jdbc:postgresql://h/db?user=x&password=hunter2", "jdbc:postgresql://h/db?user=x&password=***"),
        # Settings.
        ("--conf spark.hadoop.fs.s3a.secret.key=hunter2", "--conf spark.hadoop.fs.s3a.secret.key=***"),
        ("--conf spark.hadoop.fs.s3a.access.key=hunter2 --x y", "--conf spark.hadoop.fs.s3a.access.key=*** --x y"),
        ("fs.azure.account.key.me.net=hunter2", "fs.azure.account.key.me.net=***"),
        ("spark.ssl.keyPassword=hunter2,x", "spark.ssl.keyPassword=***"),
        ("AWS_SECRET_ACCESS_KEY=hunter2", "AWS_SECRET_ACCESS_KEY=***"),
        ("apiKey: hunter2", "apiKey: ***"),
        ("key=hunter2", "key=***"),
        ("bad --conf 'spark.x.password=a hunter2'", "bad --conf 'spark.x.password=***'"),
        ("['--conf', 'a.password=hunter2']", "['--conf', 'a.password=***']"),
        # Several words, quotes, JSON.
        ("password: correct hunter2 battery", "password: ***"),
        ("password=a hunter2 --master yarn", "password=*** --master yarn"),
        ('password = "correct hunter2"', 'password = "***"'),
        (r"password='it\'s hunter2'", "password='***'"),
        ('secret=a"hunter2 x', "secret=***"),
        ("secret=a,hunter2", "secret=***"),
        ('{"password": "hunter2", "x": 1}', '{"password": "***", "x": 1}'),
        ("{'fs.secret.key': 'a hunter2'}", "{'fs.secret.key': '***'}"),
        ("Authorization: Bearer hunter2", "Authorization: ***"),
        ("error: spark.x: secret: hunter2", "error: spark.x: secret: ***"),
    ],
)  # fmt: skip
def test_secrets_are_masked(text: str, expected: str) -> None:
    assert masked(text) == expected
    assert SECRET not in masked(f"highwater: Spark does not start: {text}")
    assert masked(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "unknown configuration key 'ack'; did you mean 'acks'?",
        "--set 'foo' is not of the form KEY=VALUE",
        "--set acks is given twice, where one KEY=VALUE[,VALUE...] is taken",
        "store holds several values of acks; choose one with --set acks=...: 1, all",
        "acks = 5 is not valid; one of: 0, 1, all",
        "x.toml: script 2 (kill): unknown key 'restart'; did you mean 'restart_ms'?",
        "a.toml: keys: unknown key 'x'",
        "run.json: 'modes' is missing",
        "KeyError: 'x'",
        "java.lang.NoSuchKeyException: no such thing",
        "Spark does not start: org.apache.spark.SparkException: Could not parse Master URL: 'x'",
        "Replay: highwater replay canary --mode hw --seed 0 --expect-digest ffdf2e59f9b8e1516ac4465d781879c4",
        "s3a://bucket/path@2024/x",
        "spark://host:7077,other:7077",
        "http://[::1]:80/x",
        "file:/a/b@c",
        "signature = committed-loss",
        "monkey=1",
        "[a-z0-9.-]+ is the key",
    ],
)
def test_ordinary_messages_stay_whole(text: str) -> None:
    assert masked(text) == text


def test_every_bundled_page_stays_whole() -> None:
    """What the commands print is full of keys and values, none of which is secret."""
    from importlib.resources import files

    for page in (*(files("scenarios") / "modes").iterdir(), *(files("scenarios") / "files").iterdir()):
        text = page.read_text(encoding="utf-8")
        assert masked(text) == text, page.name


@pytest.mark.parametrize(
    "text",
    [
        "a." * 40_000,
        "key=" + ")" * 80_000 + "x",
        "-" + "VALUE-secret=" * 8_000,
        "a." * 40_000 + "@",
        "a=" * 50_000,
        "x://" * 20_000,
        "s3://a:b" * 10_000,
        "key='" * 20_000,
        "'" * 50_000,
    ],
)
def test_long_texts_end(text: str) -> None:
    """Were the time a square of the length, this would take minutes."""
    begin = time.process_time()
    assert len(masked(text)) <= len(text) + 4
    assert time.process_time() - begin < 5
