"""`for_rewards`: by hand with the arguments of a trainer, with two processes, and in real steps of GRPOTrainer."""

import json
import math
import os
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from PIL import Image
from transformers import TrainerState

from scripts.reports import toy_policy as train_toy_policy
from tests import preloaded
from tests.conftest import ROOT
from tests.reward_run import PROMPTS, SIZE, TEXTS, make_reward, rate_by_length, train
from text_metrics.metrics._core.core_rewards import multiply, read_completions

ASKED = [prompt for prompt in PROMPTS for _ in range(SIZE)]
SETS = [TEXTS[i : i + SIZE] for i in range(0, len(TEXTS), SIZE)]
CASES = [
    ("vendi_embed", {"q": 0.5}),
    ("vendi_embed", {"kernel": "ngram"}),
    ("chamfer_diversity", {}),
]
each_case = pytest.mark.parametrize(("name", "settings"), CASES)


def call(reward, completions=TEXTS, prompts=ASKED, **columns):
    """Call a reward function with the keyword arguments of GRPOTrainer."""
    state, ids = TrainerState(), [[1, 2]] * len(completions)
    extra = {"trainer_state": state, "log_extra": lambda column, values: None, "log_metric": lambda name, value: None}
    return reward(prompts=prompts, completions=completions, completion_ids=ids, **(extra | columns))


def expected_contributions(load, name, settings):
    found = load(name).compute(predictions=SETS, contributions=True, **settings)["contributions"]
    return [value for values in found for value in values]


@each_case
def test_a_reward_is_the_contribution_to_the_set(load, name, settings):
    reward = load(name).for_rewards(set_size=SIZE, **settings)
    expected = expected_contributions(load, name, settings)
    assert call(reward) == pytest.approx(expected, abs=1e-9)
    chats = [[{"role": "assistant", "content": text}] for text in TEXTS]
    asked = [[{"role": "user", "content": prompt}] for prompt in ASKED]
    assert call(reward, chats, asked) == pytest.approx(expected, abs=1e-9)
    assert reward.__name__ == f"{name}_contribution"
    assert all(type(value) is float for value in call(reward))


@each_case
def test_quality_times_contribution(load, name, settings):
    def rate(completions, ratings, **columns):
        assert columns["prompts"] == ASKED
        assert len(columns["completion_ids"]) == len(completions)
        return [None if text == "a pot" else rating for text, rating in zip(completions, ratings, strict=True)]

    reward = load(name).for_rewards(SIZE, reward="quality_times_contribution", quality=rate, **settings)
    expected = [0.5 * max(value, 0) for value in expected_contributions(load, name, settings)]
    found = call(reward, ratings=[0.5] * 12)
    assert found.pop() is None
    assert found == pytest.approx(expected[:-1], abs=1e-9)
    assert call(reward, ratings=[0.0] * 12) == [0.0] * 11 + [None]


def test_a_product_rewards_no_text_for_its_faults():
    assert multiply(0.5, 2.0) == 1.0
    # The worse of two repeats must not gain by its quality.
    assert multiply(0.1, -0.2) == multiply(0.9, -0.2) == 0.0
    assert multiply(None, 1.0) is multiply(1.0, None) is None


def test_quality_is_gruen(load):
    gruen = load("gruen").for_rewards()
    assert call(gruen) == pytest.approx(load("gruen").compute(predictions=TEXTS)["scores"], abs=1e-6)
    assert gruen.__name__ == "gruen_quality"
    reward = load("chamfer_diversity").for_rewards(SIZE, "quality_times_contribution", gruen)
    contributions = expected_contributions(load, "chamfer_diversity", {})
    expected = [multiply(*pair) for pair in zip(call(gruen), contributions, strict=True)]
    assert call(reward) == pytest.approx(expected, abs=1e-6)


def test_the_signature_and_the_log_say_what_was_scored(load):
    logged = []
    reward = load("vendi_embed").for_rewards(SIZE, "quality_times_contribution", rate_by_length, kernel="ngram")
    assert reward.signature is None
    call(reward, log_metric=lambda name, value: logged.append((name, value)))
    result = load("vendi_embed").compute(predictions=SETS, kernel="ngram")
    assert logged == [("vendi_embed", pytest.approx(score)) for score in result["scores"]]
    ending = "|reward:quality_times_contribution|quality:custom(rate_by_length)"
    assert reward.signature == result["signature"] + ending
    plain = load("vendi_embed").for_rewards(SIZE, kernel="ngram")
    call(plain)
    assert plain.signature == result["signature"] + "|reward:contribution"


def test_nothing_of_the_policy_is_touched(load):
    weights = torch.ones(3, requires_grad=True)
    state = torch.get_rng_state()
    with torch.enable_grad():
        rewards = call(load("vendi_embed").for_rewards(SIZE))
        loss = (weights.sum() * torch.tensor(rewards)).sum()
    loss.backward()
    assert weights.grad is not None
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled()


def test_chat_messages_are_read():
    parts = [{"type": "text", "text": "a "}, {"type": "text", "text": "cup"}]
    chats = [
        "plain",
        [],
        [{"content": "no role"}],
        [{"role": "assistant", "content": parts}],
        [
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "content": "4"},
            {"role": "assistant", "content": "four"},
            {"role": "assistant", "content": "that is all"},
        ],
    ]
    assert read_completions(chats) == ["plain", "", "no role", "a cup", "four\nthat is all"]
    for broken, message in [
        ("text", "completions must be a list of texts or of lists of chat messages"),
        ([3], r"completions\[0\] must be a text or a list of chat messages\. Got int 3"),
        ([["a"]], r"completions\[0\]\[0\] must be a chat message with a content"),
        ([[{"role": "assistant"}]], "must be a chat message with a content"),
        ([[{"content": [{"type": "image"}]}]], r"completions\[0\]\[0\]\['content'\] must be a text"),
    ]:
        with pytest.raises(TypeError, match=message):
            read_completions(broken)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("self_bleu", {"set_size": 4}, "self_bleu gives no rewards"),
        ("probeval", {"set_size": 4}, "probeval gives no rewards"),
        ("gruen", {"set_size": 4}, "set_size has no effect: gruen scores each text by itself"),
        ("gruen", {"reward": "contribution"}, "reward must be one of 'quality'. Got str 'contribution'"),
        ("vendi_embed", {}, "set_size must be the number of completions of a prompt"),
        ("vendi_embed", {"set_size": 0}, "set_size must be"),
        ("vendi_embed", {"set_size": 4, "reward": "quality"}, "reward must be one of 'contribution', 'quality_times"),
        ("vendi_embed", {"set_size": 4, "reward": "quality_times_contribution"}, "needs quality"),
        ("vendi_embed", {"set_size": 4, "quality": rate_by_length}, "quality has no effect on reward='contribution'"),
        ("vendi_embed", {"set_size": 4, "confidence": 0.9}, "confidence cannot be given to for_rewards"),
        ("vendi_embed", {"set_size": 4, "rarefy": 2}, "rarefy cannot be given to for_rewards"),
        ("vendi_embed", {"set_size": 4, "weights": [1]}, "weights cannot be given to for_rewards"),
    ],
)
def test_what_cannot_work_is_named(load, name, settings, message):
    with pytest.raises(ValueError, match=message):
        load(name).for_rewards(**settings)


def test_wrong_types_are_named(load):
    metric = load("vendi_embed")
    with pytest.raises(TypeError, match="quality must be a reward function"):
        metric.for_rewards(4, "quality_times_contribution", [0.5])
    with pytest.raises(TypeError, match="vendi_embed has no argument 'order'"):
        metric.for_rewards(4, order=1)


def test_half_a_set_is_never_scored(load):
    reward = load("vendi_embed").for_rewards(SIZE, kernel="ngram")
    with pytest.raises(ValueError, match=r"Got set_size=4 for 10 completions of 1 processes, .* equal in runs of 2, 4"):
        call(reward, TEXTS[:10], ASKED[:10])
    with pytest.raises(ValueError, match=r"num_generations.*\. Got set_size=4 for 10 completions of 1 processes\.$"):
        reward(completions=TEXTS[:10])
    for size in (2, 3, 6, 12):
        message = f"Got set_size={size} for 12 completions of 1 processes, whose prompts are equal in runs of 4"
        with pytest.raises(ValueError, match=message):
            call(load("vendi_embed").for_rewards(size, kernel="ngram"))
    with pytest.raises(ValueError, match=r"Got set_size=4 for 12 .*, whose prompts are equal in runs of 1\."):
        call(reward, prompts=PROMPTS * SIZE)
    # The prompt of two sets in a row, among others: those that are not repeated show the size.
    assert call(reward, prompts=ASKED[:4] * 2 + ASKED[4:8]) == call(reward)
    with pytest.raises(ValueError, match=r"prompts must have an item for each completion\. Got 3 for 12"):
        call(reward, prompts=PROMPTS)
    with pytest.raises(
        ValueError, match="set_size=2, but chamfer_diversity has no contributions for sets of this size"
    ):
        load("chamfer_diversity").for_rewards(2)(completions=TEXTS)
    assert reward(completions=[]) == []


def test_prompts_with_images_differ_by_their_pixels(load):
    def ask(colour):
        parts = [{"type": "image", "image": Image.new("RGB", (4, 4), colour)}, {"type": "text", "text": "What is it?"}]
        return [{"role": "user", "content": parts}]

    reward = load("vendi_embed").for_rewards(SIZE, kernel="ngram")
    asked = [ask(colour) for colour in ("red", "green", "blue") for _ in range(SIZE)]
    assert call(reward, prompts=asked) == call(reward)
    with pytest.raises(ValueError, match=r"Got set_size=4 for 12 .*, whose prompts are equal in runs of 12\."):
        call(reward, prompts=[ask("red") for _ in TEXTS])


def test_a_completion_that_is_no_text_is_named(load):
    for name, settings in (("gruen", {}), ("vendi_embed", {"set_size": SIZE, "kernel": "ngram"})):
        with pytest.raises(TypeError, match=r"completions\[3\] must be a text or a list of chat messages\. Got None"):
            call(load(name).for_rewards(**settings), [*TEXTS[:3], None, *TEXTS[4:]])


@pytest.mark.parametrize(
    ("ratings", "error", "message"),
    [
        ([0.5], ValueError, "quality must return a rating for each completion. Got 1 for 12"),
        ([0.5] * 11 + [1.5], ValueError, r"quality of completions\[11\] must be in \[0, 1\]"),
        ([0.5] * 11 + [math.nan], ValueError, r"quality of completions\[11\] must be in \[0, 1\]\. Got nan"),
        ([0.5] * 11 + ["x"], TypeError, r"quality of completions\[11\] must be a number"),
        (0.5, TypeError, "quality must be a function that returns a list of ratings"),
    ],
)
def test_wrong_ratings_are_named(load, ratings, error, message):
    def rate(**columns):
        return ratings

    reward = load("vendi_embed").for_rewards(SIZE, "quality_times_contribution", rate, kernel="ngram")
    with pytest.raises(error, match=message):
        call(reward)


def run_two_processes(folder, jobs):
    (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    program = "from tests import reward_run, trainer_run\ntrainer_run.in_two_processes(reward_run.main)\n"
    done = preloaded.run(
        program, folder / "jobs.json", env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"found-{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


BY_NGRAMS = {"set_size": SIZE, "kernel": "ngram"}
WHOLE = [
    # Equal slices, of which each holds half of the second set.
    {"name": "vendi_embed", "settings": BY_NGRAMS, "ends": [6, 12]},
    {
        "name": "vendi_embed",
        "settings": {**BY_NGRAMS, "reward": "quality_times_contribution", "quality": True},
        "ends": [6, 12],
    },
    {"name": "chamfer_diversity", "settings": {"set_size": SIZE}, "ends": [2, 12]},
]
BROKEN = [
    {"name": "vendi_embed", "settings": BY_NGRAMS, "ends": [6, 12], "broken": 1},
    {"name": "vendi_embed", "settings": BY_NGRAMS, "ends": [6, 10]},
    {"name": "vendi_embed", "settings": BY_NGRAMS, "ends": [6, 12], "logs": True},
]
TRAIN = {"train": True, "name": "vendi_embed", "settings": BY_NGRAMS, "n_generations": 4, "per_process": 2}


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    """What each of two processes gives for all jobs, the training last; they start once, since they import much."""
    # The trainer comes first, because it starts the group of processes itself.
    jobs = [TRAIN] if find_spec("trl") else []
    found = run_two_processes(tmp_path_factory.mktemp("two"), [*jobs, *WHOLE, *BROKEN])
    return [one[len(jobs) :] + one[: len(jobs)] for one in found]


@pytest.mark.slow
def test_two_processes_give_what_one_gives(load, two_processes):
    first, second = two_processes
    for i, job in enumerate(WHOLE):
        expected = call(make_reward(job["name"], job["settings"]))
        assert [*first[i], *second[i]] == pytest.approx(expected, abs=1e-6), job
    # All processes raise an error; none waits for another.
    assert first[3].startswith("RuntimeError: Process 1 could not read its completions: completions[0] must be a text")
    assert second[3].startswith("TypeError: completions[0] must be a text")
    assert "set_size=4 for 10 completions of 2 processes" in first[4]
    assert second[4] == first[4]
    # Each set is logged once, so that the trainer's mean is that of the sets.
    scores = load("vendi_embed").compute(predictions=SETS, kernel="ngram")["scores"]
    assert first[5] == [["vendi_embed", pytest.approx(score, abs=1e-6)] for score in scores[:2]]
    assert second[5] == [["vendi_embed", pytest.approx(scores[2], abs=1e-6)]]


def check_log(load, found, settings):
    """Compare the logged rewards of each step with those of the step's completions, from all processes."""
    logged = [entry for entry in found[0]["log"] if "rewards/vendi_embed_contribution/mean" in entry]
    assert len(logged) == len(found[0]["seen"]) == 2
    for step, entry in enumerate(logged):
        prompts, texts = ([x for one in found for x in one["seen"][step][part]] for part in (0, 1))
        assert [prompts[i] for i in range(0, len(prompts), 4)] == [
            prompt for prompt, *rest in zip(*[iter(prompts)] * 4, strict=True) if rest == [prompt] * 3
        ]
        result = load("vendi_embed").compute(predictions=texts, set_size=4, contributions=True, **settings)
        rewards = torch.tensor(result["contributions"])
        assert entry["rewards/vendi_embed_contribution/mean"] == pytest.approx(rewards.mean().item(), abs=1e-5)
        assert entry["reward"] == pytest.approx(rewards.mean().item(), abs=1e-5)
        assert entry["vendi_embed"] == pytest.approx(result["vendi_embed"], abs=1e-5)
        assert rewards.std() > 0
    assert all(one["changed"] for one in found)


@pytest.mark.slow
def test_grpo_trainer_learns_from_the_rewards(load, tmp_path):
    pytest.importorskip("trl", reason="trl is not installed")
    found = train(tmp_path, "vendi_embed", {"set_size": 4, "kernel": "ngram"}, n_generations=4, per_process=8)
    check_log(load, [found], {"kernel": "ngram"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "numbers", "message"),
    [
        (4, {"n_generations": 8}, "Got set_size=4 for 8 completions of 1 processes, of which the trainer generates 8"),
        (8, {"n_generations": 4}, "Got set_size=8 for 8 completions of 1 processes, of which the trainer generates 4"),
        (4, {"n_generations": 4, "n_evaluated": 2}, "set_size=4 for 2 completions .* the trainer generates 2 for each"),
    ],
)
def test_grpo_trainer_with_another_number_of_generations(tmp_path, size, numbers, message):
    pytest.importorskip("trl", reason="trl is not installed")
    with pytest.raises(ValueError, match=message):
        train(tmp_path, "vendi_embed", {"set_size": size, "kernel": "ngram"}, per_process=8, **numbers)


@pytest.mark.slow
def test_grpo_trainer_with_one_prompt_in_all_sets(load, tmp_path):
    pytest.importorskip("trl", reason="trl is not installed")
    settings = {"set_size": 4, "kernel": "ngram"}
    found = train(tmp_path, "vendi_embed", settings, 4, 8, prompts=PROMPTS[:1] * 4, n_evaluated=4)
    steps = [texts for prompts, texts in found["seen"] if prompts == PROMPTS[:1] * 8]
    assert len(steps) == 2
    scores = [load("vendi_embed").compute(predictions=texts, **settings)["vendi_embed"] for texts in steps]
    assert scores == pytest.approx([entry["vendi_embed"] for entry in found["log"] if "vendi_embed" in entry])


@pytest.mark.slow
def test_two_processes_of_grpo_trainer_hold_half_a_set_each(load, two_processes):
    pytest.importorskip("trl", reason="trl is not installed")
    found = [one[-1] for one in two_processes]
    assert all(len(texts) == 2 for one in found for _, texts in one["seen"])
    check_log(load, found, {"kernel": "ngram"})


@pytest.mark.slow
def test_a_policy_collapses_without_the_contribution(load, monkeypatch):
    ratings = {}

    def rate(completions, **columns):
        """Rate by gruen each of the 16 answers once."""
        new = [text for text in dict.fromkeys(completions) if text not in ratings]
        if new:
            ratings.update(zip(new, load("gruen").compute(predictions=new)["scores"], strict=True))
        return [ratings[text] for text in completions]

    known = {"gruen": SimpleNamespace(for_rewards=lambda: rate), "vendi_embed": load("vendi_embed")}
    monkeypatch.setattr(train_toy_policy, "load", known.get)
    monkeypatch.setattr(train_toy_policy, "_STEPS", 100)
    rewards = train_toy_policy.make_rewards()
    by_quality, by_product = (
        train_toy_policy.train(rewards[name], 4, 0.0) for name in ("quality", "quality × contribution")
    )
    # 2.84 and 7.20 of 8 answers, from 6.14.
    assert by_quality.effective[-1].mean() < 3.5
    assert by_product.effective[-1].mean() > 6.5
    # Noise would avoid a collapse, too.
    assert by_product.valid.mean(1).min() == by_product.valid[0].mean()
    assert by_product.valid[-1].mean() > 0.8
