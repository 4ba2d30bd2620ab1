import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from retainer.values.versions import order
from tests.length import length

RELEASE = st.lists(st.integers(0, 10**6), min_size=1, max_size=5).map(lambda parts: ".".join(map(str, parts)))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("9.1", "9.10"),
        ("9.9", "9.10"),
        ("9.10", "10"),
        ("9", "9.0.1"),
        ("9.1", "9.1.1"),
        ("9.0.99", "9.1"),
        ("0", "0.0.1"),
        ("9.1-alpha", "9.1-beta"),
        ("9.1-beta", "9.1-rc"),
        ("9.1-beta.9", "9.1-beta.10"),
        ("9.1-rc.1", "9.1"),
        ("9.1.dev3", "9.1a1"),
        ("9.0.9", "9.1-alpha"),
        ("9.1", "9.1.post1"),
        ("9.1.post1", "9.1.1-alpha"),
        ("6.7.2", "6.8-RC1"),
        ("2024.9.30", "2024.10.1"),
        ("200000000000", "1000000000000"),
        ("v9.9", "V9.10"),
        ("9.9-custom", "9.10-custom"),
        ("Release 9.9 (stable)", "9.10"),
        ("trunk", "0.1"),
        ("", "0.0.1"),
    ],
)
def test_an_older_version_comes_before_a_newer_one(older, newer):
    assert order(older) < order(newer)
    assert not order(newer) < order(older)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("9.1", "9.1.0"),
        ("9.1", "9.1.0.0.0"),
        ("9.1.0", "v9.1"),
        ("09.01", "9.1"),
        (" 9.1 ", "9.1"),
        ("9.1-RC1", "9.1rc1"),
        ("9.1-beta.2", "9.1b2"),
        ("9.1+build.7", "9.1"),
        ("9.1-custom", "9.1"),
        ("0", "0.0.0"),
        ("trunk", "latest"),
    ],
)
def test_what_is_the_same_version_has_the_same_place(one, other):
    assert order(one) == order(other)


@settings(max_examples=length(1000), deadline=None)
@given(RELEASE, RELEASE)
def test_releases_sort_as_the_library_sorts_them(one, other):
    assert (order(one) < order(other)) == (Version(one) < Version(other))
    assert (order(one) == order(other)) == (Version(one) == Version(other))


@settings(max_examples=length(1000), deadline=None)
@given(RELEASE, st.lists(st.sampled_from(["", "a1", "b2", "b10", "rc1", ".dev4", ".post1", ".0", ".1"]), min_size=2))
def test_stages_of_a_release_sort_as_the_library_sorts_them(release, stages):
    versions = [release + stage for stage in stages]
    assert sorted(versions, key=order) == sorted(versions, key=Version)


@settings(max_examples=length(500), deadline=None)
@given(st.text(max_size=50))
def test_any_text_has_a_place_and_it_is_plain(version):
    assert order(version).isascii()
