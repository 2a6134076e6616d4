"""The comparison of a build's classes, without Java."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from tests.verification.oracle import build
from tests.verification.oracle.comparing import Comparison, Found, Outcome
from tests.verification.oracle.kafka import plain
from tests.verification.oracle.releases import RULES
from tests.verification.oracle.subjects import SUBJECTS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("number", "release"),
    [((4, 3, 1), "4.3.1"), ((4, 3, 2), "4.3.1"), ((5, 0, 0), "4.4.0"), ((0, 9, 0), "0.10.2.2"), ((4, 2, 1), "4.2.1")],
)
def test_a_build_is_compared_with_the_nearest_release(number: tuple[int, ...], release: str) -> None:
    assert build.release_of(number) == release


def test_every_subject_has_the_names_of_its_classes() -> None:
    assert set(build.CLASSES) == set(SUBJECTS)


def folder_of(place: Path, version: str) -> Path:
    """A folder that looks like a build."""
    place.mkdir()
    with zipfile.ZipFile(place / f"kafka-clients-{version}.jar", "w") as jar:
        jar.writestr("kafka/kafka-version.properties", f"version={version}\n")
    (place / f"kafka_2.13-{version}.jar").write_bytes(b"")
    return place


def test_a_build_has_the_subjects_of_its_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("highwater.lab.kafka.releases.tool", lambda _: tmp_path / "logging.jar")
    monkeypatch.setattr("highwater.lab.kafka.releases.is_fetched", lambda _: False)
    new = build.subjects(str(folder_of(tmp_path / "new", "4.5.0-SNAPSHOT")))
    old = build.subjects(str(folder_of(tmp_path / "old", "2.6.0")))
    assert new[:2] == ["partition-change", "kraft-controller"]
    assert "zk-controller" in old
    assert "kraft-controller" not in old


def test_classes_that_a_build_changes_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def jar(name: str, content: str) -> Path:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("kafka/cluster/Partition$.class", content)
            archive.writestr("kafka/server/KafkaServer.class", "same")
        return tmp_path / name

    released, changed = jar("kafka_2.13-4.3.1.jar", "old"), jar("kafka_2.13-other.jar", "new")
    assert build.changed_classes([changed], [released]) == {"Partition"}
    monkeypatch.setattr("highwater.lab.kafka.releases.tool", lambda _: tmp_path / "logging.jar")
    monkeypatch.setattr("highwater.lab.kafka.releases.is_fetched", lambda _: True)
    monkeypatch.setattr("highwater.lab.kafka.releases.class_path", lambda _: [released])
    folder = folder_of(tmp_path / "build", "4.3.1")
    (folder / "kafka_2.13-4.3.1.jar").write_bytes(changed.read_bytes())
    names = build.subjects(str(folder))
    assert names[:4] == ["partition", "partitions", "partition-change", "kraft-controller"]
    assert sorted(names) == sorted(name for name in build.CLASSES if not name.startswith("zk-"))


def test_a_difference_is_told_by_the_names_of_fields() -> None:
    case: list[list[Any]] = [["reassign", [2, 4], 3, 1, "ONLINE", [3]]]
    kafka: list[Any] = [[3, 1, [3], [], [], 1, [3], [], [], False]]
    core: list[Any] = [[3, 1, [3], [1, 2], [], 1, [3], [], [], False]]
    told = build.sentence("partition-change", Found(7, (), case, kafka, core, 0))
    assert told == (
        'reassign acceptable=[2,4] minIsr=3 elrEnabled=1 election="ONLINE" replicas=[3]: the build answers elr [], the '
        "mode elr [1,2]"
    )


def test_an_answer_of_another_form_is_told_whole() -> None:
    told = build.sentence("log", Found(7, (), [["A", 1, 0], ["C"]], [[1], "error"], [[1], [2]], 1))
    assert told == "A 1 0; C: the build answers error, the mode [2]"


def differing(rules: dict[str, str], *cases: list[list[Any]]) -> list[build.Differing]:
    """Cases with the answers that the rules of 4.3.1 give if some have other values."""
    subject, changed = SUBJECTS["partition-change"], RULES["4.3.1"].override(rules)
    return [build.Differing(case, plain(subject.run(case, "4.3.1", changed, ()))) for case in cases]


def test_a_repair_is_recognised_by_its_answers() -> None:
    cases = [[["reassign", [2, 4], 3, 1, "ONLINE", [number]]] for number in (3, 4)]
    found = differing({"elr_outside_assignment": "dropped"}, *cases)
    assert build.explained(SUBJECTS["partition-change"], "4.3.1", found) == ["elr_outside_assignment=dropped"]


def test_answers_of_no_rule_are_explained_by_none() -> None:
    (one,) = differing({}, [["reassign", [2, 4], 3, 1, "ONLINE", [3]]])
    other = build.Differing(one.case, ["refused"])
    assert build.explained(SUBJECTS["partition-change"], "4.3.1", [other]) == []


def test_a_difference_is_kept_for_its_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Found(0, (), [], [], [], 0)
    monkeypatch.setattr(Comparison, "_made_small", lambda *_: small)
    comparison = build.KeepingComparison(SUBJECTS["partition-change"], None, "4.3.1")  # type: ignore[arg-type]
    outcome = Outcome()
    for seed in range(build.KEPT + 5):
        case = SUBJECTS["partition-change"].case("4.3.1", seed)
        comparison._differs(seed, case, [["other"]] * len(case), outcome)
    assert len(comparison.differing) == build.KEPT
    assert outcome.unlisted == build.KEPT + 5
