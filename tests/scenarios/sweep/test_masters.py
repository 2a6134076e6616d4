from __future__ import annotations

import socket
from contextlib import closing

import pytest

from scenarios.sweep import masters
from sim.errors import InputError, UnavailableError


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*,4]", "local-cluster[1,1,1024]", "yarn", "k8s://https://h:1"]
)
def test_other_masters_are_left_to_spark(master: str) -> None:
    masters.check(master)


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("foo", "--master foo is no Spark master: "),
        ("yarn-x", "is no Spark master: "),
        ("spark://host", "is not of the form spark://HOST:PORT"),
        ("spark://u:hunter2@host:7077", r"--master spark://\*\*\*@host:7077 is not of the form"),
        ("spark://a:1,b", "is not of the form"),
        ("sc://", r"is not of the form sc://HOST\[:PORT\]"),
        ("sc://u:hunter2@h", r"sc://\*\*\*@h is not"),
    ],
)
def test_url_that_is_no_master(master: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        masters.check(master)
    assert "hunter2" not in str(caught.value)


def test_a_master_answers_or_does_not() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        masters.check(f"spark://127.0.0.1:{port}")
        masters.check(f"sc://127.0.0.1:{port}/;token=hunter2")
        with closing(socket.create_server(("127.0.0.1", 0))) as other:
            gone = other.getsockname()[1]
        masters.check(f"spark://127.0.0.1:{gone},127.0.0.1:{port}")
    with pytest.raises(
        UnavailableError, match=f"no Spark master answers at spark://127.0.0.1:{gone} .*Connection refused"
    ):
        masters.check(f"spark://127.0.0.1:{gone}")
    with pytest.raises(UnavailableError) as caught:
        masters.check(f"sc://127.0.0.1:{gone}/;token=hunter2")
    assert "hunter2" not in str(caught.value)
