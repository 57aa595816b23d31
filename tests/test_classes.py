"""Classes of texts that say the same: grouping, scores, utility."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.largest_tensor import LargestTensor
from tests.references import classes as reference
from tests.references import diversity
from text_metrics.metrics._core import core_class_scores, core_classes, core_inputs, core_regrouping

ORDERS = [0, 0.5, 1, 2, float("inf")]


def make(texts, sizes, same, grouping="complete"):
    """Group texts of some sets by a function of two texts; returns the classes and how they were made."""
    sizes = np.asarray(sizes)
    items = core_classes.distinct_items(core_inputs.content_ranks(texts), sizes, grouping)
    pairs = core_classes.all_pairs(items.sizes)
    kept = [same(*(texts[i] for i in items.first[pair])) for pair in pairs]
    chosen = core_classes.selected_pairs(pairs[np.array(kept, dtype=bool)], len(items.first))
    components = core_classes.link(chosen)
    classes = core_classes.group(items, components, sizes, grouping)
    return classes, core_class_scores.Relation(items, components, grouping)


def listed(pairs):
    """List pairs of items, as (earlier, later)."""
    later = np.repeat(np.arange(len(pairs.order)), np.diff(pairs.starts))
    return np.stack([pairs.order[pairs.earlier], pairs.order[later]], axis=1)


def all_items(sizes):
    return core_classes.Items(np.arange(sizes.sum()), np.arange(sizes.sum()), sizes)


def split(values, sizes):
    return [part.tolist() for part in np.split(np.asarray(values), np.cumsum(sizes)[:-1])]


@st.composite
def cases(draw):
    """Sets of texts from a small alphabet, and a random symmetric relation of its letters."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=5))
    texts = draw(st.lists(st.sampled_from("abcdefgh"), min_size=sum(sizes), max_size=sum(sizes)))
    alike = draw(st.sets(st.tuples(*[st.sampled_from("abcdefgh")] * 2), max_size=24))
    return texts, sizes, lambda a, b: a == b or (a, b) in alike or (b, a) in alike


@pytest.fixture(params=[64, 0], ids=["matrices", "items"])
def large(request, monkeypatch):
    """Group components as matrices; or all item by item, as large ones are."""
    monkeypatch.setattr(core_classes, "LARGE", request.param)


@pytest.mark.usefixtures("large")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases(), st.sampled_from(core_classes.GROUPINGS))
def test_equals_the_plain_loop(case, grouping):
    texts, sizes, same = case
    classes, _ = make(texts, sizes, same, grouping)
    for own, found, count in zip(split(texts, sizes), split(classes.of_text, sizes), classes.counts, strict=True):

        def related(i, j, own=own):
            return same(own[i], own[j])

        if grouping == "complete":
            expected = reference.complete_classes(len(own), related, own)
        else:
            expected = reference.greedy_classes(len(own), related)
        assert found == expected
        assert count == max(expected) + 1


def test_complete_linkage_does_not_chain():
    # B is the same as A and as C, which are not the same: no class holds all three.
    def same(a, b):
        return a == b or {a, b} in ({"A", "B"}, {"B", "C"})

    for order in itertools.permutations("ABC"):
        classes, _ = make(list(order), [3], same)
        labels = dict(zip(order, classes.of_text.tolist(), strict=True))
        assert labels["A"] == labels["B"] != labels["C"]
    for order, expected in (("ABC", [0, 0, 1]), ("BAC", [0, 0, 0]), ("CBA", [0, 0, 1])):
        assert make(list(order), [3], same, "greedy")[0].of_text.tolist() == expected


def test_greedy_grouping_takes_the_first_match():
    # The text in between matches both founders; the released code of semantic entropy takes the last.
    def same(a, b):
        return a == b or "B" in (a, b)

    texts = ["A", "C", "B"]
    assert make(texts, [3], same, "greedy")[0].of_text.tolist() == [0, 1, 0]
    assert reference.greedy_classes(3, lambda i, j: same(texts[i], texts[j])) == [0, 1, 0]
    assert reference.last_match_classes(3, lambda i, j: same(texts[i], texts[j])) == [0, 1, 1]


@settings(deadline=None)
@given(cases(), st.randoms())
def test_the_order_of_a_set_does_not_change_complete_classes(case, random):
    texts, sizes, same = case
    classes, _ = make(texts, sizes, same)
    start = 0
    for size in sizes:
        order = random.sample(range(start, start + size), size)
        alone, _ = make([texts[i] for i in order], [size], same)
        assert alone.of_text.tolist() == reference.first_appearance(classes.of_text[order].tolist())
        start += size


@settings(deadline=None)
@given(cases())
def test_every_complete_class_is_all_the_same(case):
    texts, sizes, same = case
    classes, _ = make(texts, sizes, same)
    for own, labels in zip(split(texts, sizes), split(classes.of_text, sizes), strict=True):
        for (a, i), (b, j) in itertools.combinations(zip(own, labels, strict=True), 2):
            assert i != j or same(a, b)
            assert a != b or i == j


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.sampled_from(ORDERS), st.data())
def test_the_score_is_that_of_the_kernel_of_blocks(labels, q, data):
    weights = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=len(labels), max_size=len(labels))))
    weights /= weights.sum()
    sizes = np.array([len(labels)])
    classes = core_classes.number_classes(np.array(labels), sizes)
    for p in (None, weights):
        score = core_class_scores.vendi_from_classes(classes, sizes, [q], p)[0, 0]
        assert score == pytest.approx(reference.vendi(labels, q, p), rel=1e-9)


def test_the_score_of_many_sets_is_that_of_each(rng):
    sizes = rng.integers(1, 9, 200)
    ids = rng.integers(0, 4, sizes.sum())
    weights = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    classes = core_classes.number_classes(ids, sizes)
    scores = core_class_scores.vendi_from_classes(classes, sizes, ORDERS, weights)
    for own, p, row in zip(split(ids, sizes), split(weights, sizes), scores, strict=True):
        assert row == pytest.approx([reference.vendi(own, q, p) for q in ORDERS], rel=1e-9)


@pytest.mark.parametrize("block_rows", [4, 16, 2048])
def test_similar_pairs_are_those_above_the_threshold(rng, set_block_rows, block_rows):
    set_block_rows(block_rows)
    sizes = np.array([1, 5, 30, 5, 2])
    vectors = rng.standard_normal((sizes.sum(), 3))
    pairs = listed(core_classes.similar_pairs(vectors, all_items(sizes), 0.6))
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    expected = (diversity.cosines(vectors) >= 0.6) & (set_of[:, None] == set_of)
    found = np.zeros_like(expected)
    found[pairs[:, 0], pairs[:, 1]] = True
    assert not (found & found.T).any()
    np.testing.assert_array_equal(found | found.T | np.eye(len(vectors), dtype=bool), expected)


def test_blocks_of_a_large_set(rng, monkeypatch, set_block_rows):
    vectors = rng.standard_normal((50, 3))
    whole = listed(core_classes.similar_pairs(vectors, all_items(np.array([50])), 0.5))
    monkeypatch.setattr(core_classes, "_ENTRIES", 350)
    set_block_rows(20)
    parts = listed(core_classes.similar_pairs(vectors, all_items(np.array([50])), 0.5))
    assert sorted(map(tuple, parts.tolist())) == sorted(map(tuple, whole.tolist()))


def test_equal_rows_are_the_same_at_any_threshold(rng):
    vectors = np.repeat(rng.standard_normal((40, 7)).astype(np.float32), 2, axis=0)
    pairs = listed(core_classes.similar_pairs(vectors, all_items(np.array([80])), 1.0))
    assert sorted(map(tuple, np.sort(pairs).tolist())) == [(2 * i, 2 * i + 1) for i in range(40)]


def test_equal_texts_with_rows_of_their_own_are_ordered_by_these(rng):
    vectors = rng.standard_normal((6, 4))
    ranks = core_inputs.content_ranks(["x"] * 6, vectors)
    assert sorted(ranks) == list(range(6))
    order = rng.permutation(6)
    assert core_inputs.content_ranks(["x"] * 6, vectors[order]).tolist() == ranks[order].tolist()
    assert core_inputs.content_ranks(["b", "a", "b"], vectors[[0, 1, 0]]).tolist() == [1, 0, 1]
    assert core_inputs.content_ranks(["b", "a", "b"]).tolist() == [1, 0, 1]


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    st.lists(st.floats(0, 1), min_size=8, max_size=8),
)
def test_utility_equals_the_plain_loop(labels, patience, quality):
    quality = np.array(quality[: len(labels)])
    sizes = np.array([len(labels)])
    classes = core_classes.number_classes(np.array(labels), sizes)
    (found,) = core_class_scores.utility(classes, sizes, quality, patience)
    assert found == pytest.approx(reference.utility(labels, quality, patience), abs=1e-12)
    assert 0 <= found <= 1 + 1e-12


def test_utility_of_noveltybench_by_hand():
    # Three generations, the second repeats the first: (1 - .8) / (1 - .512) * (0.9 + .64 * 0.5).
    classes = core_classes.number_classes(np.array([3, 3, 1]), np.array([3]))
    found = core_class_scores.utility(classes, np.array([3]), np.array([0.9, 1.0, 0.5]), 0.8)
    assert found == pytest.approx([0.2 / 0.488 * (0.9 + 0.64 * 0.5)])


@pytest.mark.usefixtures("large")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases(), st.sampled_from(core_classes.GROUPINGS), st.sampled_from(ORDERS), st.booleans(), st.data())
def test_without_each_text_equals_the_plain_loop(case, grouping, q, weighted, data):
    texts, sizes, same = case
    weights = None
    if weighted:
        parts = [np.array(data.draw(st.lists(st.floats(0.1, 1), min_size=size, max_size=size))) for size in sizes]
        weights = np.concatenate([part / part.sum() for part in parts])
    sizes = np.array(sizes)
    classes, relation = make(texts, sizes, same, grouping)
    found = core_class_scores.classes_without(classes, sizes, q, weights, relation)
    for text, score in enumerate(found.tolist()):
        set_index, _ = core_inputs.locate(text, sizes)
        start = int(sizes[:set_index].sum())
        rest = [i for i in range(start, start + sizes[set_index]) if i != text]
        if not rest:
            assert np.isnan(score)
            continue
        anew, _ = make([texts[i] for i in rest], [len(rest)], same, grouping)
        p = None if weights is None else weights[rest] / weights[rest].sum()
        expected = core_class_scores.vendi_from_classes(anew, np.array([len(rest)]), [q], p)[0, 0]
        assert score == pytest.approx(expected, rel=1e-9)


def test_the_absence_of_a_text_regroups_the_others():
    def same(a, b):
        return a == b or {a, b} in ({"A", "B"}, {"B", "C"})

    classes, relation = make(["A", "B", "C"], [3], same)
    without = core_class_scores.classes_without(classes, np.array([3]), 0, relation=relation)
    assert without.tolist() == [1, 2, 1]
    # Classes that people gave stay as they are.
    assert core_class_scores.classes_without(classes, np.array([3]), 0).tolist() == [2, 2, 1]


def test_without_a_text_its_duplicate_is_visited_later():
    # Greedily, b joins a, and c founds a class; without the first a, all join b.
    def same(a, b):
        return a == b or "b" in (a, b)

    classes, relation = make(["a", "b", "a", "c"], [4], same, "greedy")
    assert classes.of_text.tolist() == [0, 0, 0, 1]
    without = core_class_scores.classes_without(classes, np.array([4]), 0, relation=relation)
    assert without.tolist() == [1, 2, 2, 1]


def test_without_each_text_in_a_large_set(rng):
    values = np.sort(rng.random(120))
    texts = [f"{value:.9f}" for value in values]

    def same(a, b):
        return abs(float(a) - float(b)) < 0.02

    sizes = np.array([120])
    for grouping in core_classes.GROUPINGS:
        shuffled = rng.permutation(texts).tolist()
        classes, relation = make(shuffled, sizes, same, grouping)
        found = core_class_scores.classes_without(classes, sizes, 1, relation=relation)
        for i in range(0, 120, 13):
            anew, _ = make(shuffled[:i] + shuffled[i + 1 :], [119], same, grouping)
            expected = core_class_scores.vendi_from_classes(anew, np.array([119]), [1])[0, 0]
            assert found[i] == pytest.approx(expected, rel=1e-9)


def peak_of_grouping(pairs):
    """Link and group the items of one set; returns the peak of memory, and the number of classes."""
    n = len(pairs.order)
    items = core_classes.Items(np.arange(n), np.arange(n), np.array([n]))
    tracemalloc.start()
    classes = core_classes.group(items, core_classes.link(pairs), np.array([n]), "complete")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, classes.counts[0]


def test_memory_grows_with_the_pairs_that_are_the_same():
    peaks, n_pairs = [], []
    for n in (2000, 4000):
        starts = np.concatenate([[0], np.cumsum(np.arange(n))])
        earlier = np.concatenate([np.arange(i, dtype=np.int32) for i in range(n)])
        peak, count = peak_of_grouping(core_classes.Pairs(np.arange(n), starts, earlier))
        assert count == 1
        peaks.append(peak)
        n_pairs.append(len(earlier))
    # The pairs of the components; those that were found are the caller's here.
    assert peaks[1] - peaks[0] < 6 * (n_pairs[1] - n_pairs[0])


def test_memory_of_a_chain_grows_with_its_length():
    peaks = []
    for n in (3000, 12_000):
        links = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
        peak, count = peak_of_grouping(core_classes.selected_pairs(links, n))
        assert count == n // 2
        peaks.append(peak)
    assert peaks[1] < 5 * peaks[0]


def test_similar_pairs_of_a_large_set_are_compared_in_bounded_blocks(rng):
    largest = []
    for n in (2500, 5000):
        with LargestTensor() as made:
            core_classes.similar_pairs(rng.standard_normal((n, 8)), all_items(np.array([n])), 0.99)
        largest.append(made.entries)
    assert max(largest) <= core_classes._ENTRIES


def test_memory_of_alike_texts_is_eight_bytes_for_each_pair(rng):
    """As the card states: what is found, and twice 4 bytes while components are made."""
    peaks, n_pairs = [], []
    for n in (2000, 4000):
        vectors = 1 + 1e-3 * rng.random((n, 2))
        tracemalloc.start()
        pairs = core_classes.similar_pairs(vectors, all_items(np.array([n])), 0.9)
        classes = core_classes.group(all_items(np.array([n])), core_classes.link(pairs), np.array([n]), "complete")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert classes.counts.tolist() == [1]
        n_pairs.append(len(pairs.earlier))
    assert n_pairs == [2000 * 1999 // 2, 4000 * 3999 // 2]
    assert peaks[1] - peaks[0] < 9 * (n_pairs[1] - n_pairs[0])


@pytest.mark.parametrize("grouping", core_classes.GROUPINGS)
def test_memory_of_removals_from_a_chain_is_bounded(monkeypatch, grouping):
    """Without a text of a chain, all later ones change their class: the changes grow with the square."""

    def removals(n):
        items, sizes = all_items(np.array([n])), np.array([n])
        links = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
        components = core_classes.link(core_classes.selected_pairs(links, n))
        classes = core_classes.group(items, components, sizes, grouping)
        relation = core_class_scores.Relation(items, components, grouping)
        tracemalloc.start()
        scores = core_class_scores.classes_without(classes, sizes, 1, relation=relation)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak, scores

    peak, together = removals(160)
    monkeypatch.setattr(core_regrouping, "_STORED", 2**9)
    monkeypatch.setattr(core_class_scores, "_ENTRIES", 2**13)
    bounded, scores = removals(160)
    np.testing.assert_allclose(scores, together, rtol=1e-12)
    assert bounded < peak / 2.5


def test_a_removal_is_followed_by_its_changes_alone():
    # Of texts that are all the same, only the first is followed, and nothing but its own leaving changes.
    earlier = [np.arange(i, dtype=np.int32) for i in range(300)]
    assignment = core_classes.group_items(earlier, "complete")
    removed = np.flatnonzero(assignment.decisive)
    assert removed.tolist() == [0]
    ((part, changes),) = core_regrouping.group_without(earlier, assignment, removed, "complete", 1024)
    assert part.tolist() == [0]
    assert [own.tolist() for own in changes] == [[0], [0], [0], [-1]]


@pytest.mark.parametrize("grouping", core_classes.GROUPINGS)
@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_removals_in_a_large_component_equal_the_plain_loop(rng, grouping, share):
    size = 80
    texts = [f"{i:02d}" for i in range(size)]
    related = np.triu(rng.random((size, size)) < share, 1)
    related |= related.T | np.eye(size, dtype=bool)

    def same(a, b):
        return related[int(a), int(b)]

    weights = rng.dirichlet(np.full(size, 0.3))
    weights[7] = 2.0
    weights /= weights.sum()
    sizes = np.array([size])
    classes, relation = make(texts, sizes, same, grouping)
    for q in (0, 1):
        found = core_class_scores.classes_without(classes, sizes, q, weights, relation)
        for i in [*range(0, size, 9), 7]:
            rest = np.delete(np.arange(size), i)
            anew, _ = make([texts[j] for j in rest], [size - 1], same, grouping)
            p = weights[rest] / weights[rest].sum()
            expected = core_class_scores.vendi_from_classes(anew, np.array([size - 1]), [q], p)[0, 0]
            assert found[i] == pytest.approx(expected, rel=1e-9)
