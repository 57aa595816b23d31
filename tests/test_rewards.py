"""`for_rewards`: by hand with the arguments of a trainer, with two processes, and in real steps of GRPOTrainer."""

import asyncio
import itertools
import math
import re
import types
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from transformers import TrainerState

import text_metrics
from tests.conftest import ROOT
from tests.trainer_run import PROMPTS, TEXTS, build_causal, build_seq2seq, build_tokenizer, in_two_processes, on_cpu
from text_metrics.training.rewards import REWARDS

SIZE = 4
ASKED = [prompt for prompt in PROMPTS for _ in range(SIZE)]
SETS = [TEXTS[i : i + SIZE] for i in range(0, len(TEXTS), SIZE)]
CASES = [
    ("vendi_embed", {"q": 0.5}, "vendi_embed_contribution_q_0.5"),
    ("chamfer_diversity", {}, "chamfer_diversity_distance"),
]


def expected_rewards(load, name, settings):
    """Return contributions, or the distances to nearest neighbours of chamfer_diversity."""
    if name == "chamfer_diversity":
        details = load(name).compute(predictions=SETS, details=True, **settings)["details"]
        of_sets = [each["distances"] for each in details]
    else:
        of_sets = text_metrics.contributions(load(name), SETS, **settings)
    return [value for values in of_sets for value in values]


def call(reward, completions=TEXTS, prompts=ASKED, **columns):
    """Call a reward function with the keyword arguments of GRPOTrainer."""
    state = TrainerState()
    ids = [[1, 2]] * len(completions)
    extra = {"trainer_state": state, "log_extra": lambda column, values: None, "log_metric": lambda name, value: None}
    return reward(prompts=prompts, completions=completions, completion_ids=ids, **(extra | columns))


@pytest.mark.parametrize(("name", "settings", "reward_name"), CASES)
def test_a_reward_is_the_contribution_to_the_set(load, name, settings, reward_name):
    reward = text_metrics.for_rewards(load(name), set_size=SIZE, **settings)
    expected = expected_rewards(load, name, settings)
    assert call(reward) == pytest.approx(expected, abs=1e-9)
    chats = [[{"role": "assistant", "content": text}] for text in TEXTS]
    prompts = [[{"role": "user", "content": prompt}] for prompt in ASKED]
    assert call(reward, chats, prompts) == pytest.approx(expected, abs=1e-9)
    assert reward.__name__ == reward_name
    assert all(type(value) is float for value in call(reward))


class OneHot:
    """Give each different word a dimension: texts without a common word are orthogonal."""

    def __init__(self, words="abcdefghi"):
        self.words = words

    def encode(self, texts):
        return torch.tensor([[float(word in text.split()) for word in self.words] for text in texts])


# Every text and every prompt has a word of them.
OF_WORDS = OneHot(sorted({word for text in TEXTS + PROMPTS for word in text.split()}))


def test_quality_is_gruen(load):
    gruen = text_metrics.for_rewards(load("gruen"))
    assert call(gruen) == pytest.approx(load("gruen").compute(predictions=TEXTS)["scores"], abs=1e-6)
    assert gruen.__name__ == "gruen_quality"
    reward = text_metrics.for_rewards(load("vendi_embed"), SIZE, quality=gruen)
    contributions = expected_rewards(load, "vendi_embed", {})
    # The worse of two repeats must not gain by its quality.
    expected = [rating * max(value, 0) for rating, value in zip(call(gruen), contributions, strict=True)]
    assert min(contributions) < 0
    assert call(reward) == pytest.approx(expected, abs=1e-6)
    assert reward.__name__ == "vendi_embed_contribution_times_gruen_quality"


def rate(completions, ratings, **columns):
    assert columns["prompts"] == ASKED
    assert len(columns["completion_ids"]) == len(completions)
    return ratings


async def rate_later(completions, ratings):
    await asyncio.sleep(0)
    return ratings


class Judge:
    async def __call__(self, *, prompts, **columns):
        return await rate_later(prompts, columns["ratings"])


in_turn = types.coroutine(lambda ratings: (yield from rate_later(None, ratings)))


@pytest.mark.parametrize("quality", [rate, lambda ratings: ratings, rate_later, Judge(), in_turn])
def test_forms_of_quality(load, quality):
    reward = text_metrics.for_rewards(load("vendi_embed"), SIZE, quality=quality, kernel="ngram")
    contributions = expected_rewards(load, "vendi_embed", {"kernel": "ngram"})
    ratings = [0.0, *[0.25] * 10, None]
    expected = [0.0, *(pytest.approx(0.25 * max(value, 0)) for value in contributions[1:-1]), None]
    assert call(reward, ratings=ratings) == expected

    async def inside_a_loop():
        return call(reward, ratings=ratings)

    assert asyncio.run(inside_a_loop()) == expected


@pytest.mark.parametrize(
    ("name", "settings", "form"),
    [
        ("vendi_embed", {"q": 2}, "texts"),
        ("vendi_embed", {"q": 2}, "chats"),
        ("vendi_embed", {"q": 2}, "parts"),
        ("vendi_embed", {"q": 2}, "column"),
        ("chamfer_diversity", {}, "texts"),
    ],
)
def test_contexts_are_the_prompts(load, name, settings, form):
    def chat(text):
        content = [{"type": "text", "text": text}] if form == "parts" else text
        return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}]

    settings = {"model": OF_WORDS, **settings}
    prompts = ASKED if form in ("texts", "column") else [chat(prompt) for prompt in ASKED]
    reward = text_metrics.for_rewards(name, SIZE, contexts="question" if form == "column" else "prompts", **settings)
    columns = {"prompts": [f"Q: {p}" for p in ASKED], "question": ASKED} if form == "column" else {"prompts": prompts}
    expected = expected_rewards(load, name, {"contexts": PROMPTS, **settings})
    assert call(reward, **columns) == pytest.approx(expected, abs=1e-6)
    assert call(reward, **columns) != pytest.approx(expected_rewards(load, name, settings), abs=1e-3)
    assert "|contexts:projected|" in reward.signature


def test_contexts_that_cannot_be_read():
    for contexts, message, columns in (
        ("other", "contexts", {"prompts": ASKED}),
        ("prompts", "contexts: the trainer must pass 'prompts'", {}),
        ("question", "contexts must be equal", {"question": ASKED[1:] + ASKED[:1]}),
    ):
        with pytest.raises(ValueError, match=message):
            text_metrics.for_rewards("vendi_embed", SIZE, contexts=contexts)(completions=TEXTS, **columns)
    with pytest.raises(ValueError, match="contexts cannot be given"):
        text_metrics.for_rewards("vendi_embed", SIZE, contexts=PROMPTS)


def test_the_signature_and_the_log_say_what_was_scored(load):
    logged = []
    reward = text_metrics.for_rewards(load("vendi_embed"), SIZE, quality=rate_by_length, kernel="ngram")
    call(reward, log_metric=lambda name, value: logged.append((name, value)))
    result = load("vendi_embed").compute(predictions=SETS, kernel="ngram")
    assert logged == [("vendi_embed_kernel_ngram", pytest.approx(score)) for score in result["scores"]]
    head, _, version = result["signature"].rpartition("|")
    assert reward.signature == f"{head}|reward:contribution|quality:given|{version}"
    plain = text_metrics.for_rewards(load("vendi_embed"), SIZE, kernel="ngram")
    call(plain)
    assert plain.signature == f"{head}|reward:contribution|{version}"


def test_nothing_of_the_policy_is_touched(load):
    weights = torch.ones(3, requires_grad=True)
    state = torch.get_rng_state()
    with torch.enable_grad():
        rewards = call(text_metrics.for_rewards(load("vendi_embed"), SIZE))
        loss = (weights.sum() * torch.tensor(rewards)).sum()
    loss.backward()
    assert weights.grad is not None
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled()


def test_chat_messages_are_read(load):
    chat = [
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "4"},
        {"role": "assistant", "content": "four"},
        {"role": "assistant", "content": "that is all"},
    ]
    reward = text_metrics.for_rewards(load("vendi_embed"), 3, kernel="ngram")
    expected = reward(completions=["plain", "", "four\nthat is all"])
    assert reward(completions=["plain", [], chat]) == expected
    parts = [{"role": "assistant", "content": [{"type": "text", "text": text} for text in ("four\nthat ", "is all")]}]
    assert reward(completions=["plain", [{"role": "assistant", "content": [{"type": "image"}]}], parts]) == expected
    texts = list(TEXTS)
    texts[3] = None
    with pytest.raises(TypeError, match=r"completions\[3\]"):
        call(text_metrics.for_rewards(load("gruen")), texts)
    for broken in ("text", [3], [["a"]], [[{"content": "no role"}]], [[{"role": "assistant", "content": [1]}]]):
        with pytest.raises(TypeError, match="completions"):
            reward(completions=broken)


def rate_by_length(completions, **columns):
    """Rate texts by their numbers of words."""
    return [len(text.split()) / 10 for text in completions]


def make_reward(name, settings):
    if "quality" in settings:
        settings = {**settings, "quality": rate_by_length}
    return text_metrics.for_rewards(text_metrics.load(name), **settings)


def build_trainer(folder, rewards, prompts=PROMPTS * 2, algorithm="GRPO", **arguments):
    """Build a trainer of TRL of a tiny model."""
    import trl
    from datasets import Dataset

    tokenizer = build_tokenizer()
    sizes = {"per_device_train_batch_size": 8, "num_generations": 4, "max_completion_length": 8}
    steps = {"max_steps": 2, "learning_rate": 0.01, "logging_steps": 1, "save_strategy": "no", "seed": 5}
    arguments = on_cpu(folder, **(sizes | steps | arguments))
    rows = Dataset.from_dict({"prompt": prompts, "answer": ["cat"] * len(prompts)})
    return getattr(trl, f"{algorithm}Trainer")(
        model=build_causal(tokenizer),
        reward_funcs=rewards,
        args=getattr(trl, f"{algorithm}Config")(bf16=False, gradient_checkpointing=False, **arguments),
        train_dataset=rows,
        eval_dataset=rows.select(range(2)),
        processing_class=tokenizer,
    )


def train(folder, name, settings, **arguments):
    """Train a tiny model; return the log, all completions of this process, and whether the weights changed."""
    seen = []

    def record(prompts, completions, **columns):
        seen.append([prompts, completions])
        return [0.0] * len(completions)

    trainer = build_trainer(folder, [make_reward(name, settings), record], **arguments)
    before = [weights.clone() for weights in trainer.model.parameters()]
    trainer.train()
    changed = any(not torch.equal(*pair) for pair in zip(before, trainer.model.parameters(), strict=True))
    return {"log": trainer.state.log_history, "seen": seen, "changed": changed}


def score_slice(name, settings, ends, logs=False):
    """Compute the rewards of this process's slice, which ends at `ends[rank]`, or with `logs` what it logs."""
    rank = torch.distributed.get_rank()
    part = slice(ends[rank - 1] if rank else 0, ends[rank])
    texts = list(TEXTS[part])
    logged = []
    columns = {"completion_ids": [[]] * len(texts), "log_metric": lambda name, value: logged.append([name, value])}
    try:
        rewards = make_reward(name, settings)(prompts=ASKED[part], completions=texts, **columns)
        return logged if logs else rewards
    except (TypeError, ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


def main(folder, jobs):
    """Run jobs in a process of several; returns what each gave."""
    results = []
    for i, job in enumerate(jobs):
        if job.pop("train", False):
            results.append(train(folder / f"run{i}", **job))
            continue
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo")
        results.append(score_slice(**job))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return results


BY_NGRAMS = {"set_size": SIZE, "kernel": "ngram"}
WHOLE = [
    # Equal slices, of which each holds half of the second set.
    {"name": "vendi_embed", "settings": BY_NGRAMS, "ends": [6, 12]},
    {"name": "vendi_embed", "settings": {**BY_NGRAMS, "quality": True}, "ends": [6, 12]},
    {"name": "vendi_embed", "settings": {"model": OF_WORDS, "contexts": "prompts"}, "ends": [2, 12]},
]
BROKEN = [
    {"name": "vendi_embed", "settings": BY_NGRAMS, "ends": [6, 10]},
    {"name": "vendi_embed", "settings": BY_NGRAMS, "ends": [6, 12], "logs": True},
]
TRAIN = {"train": True, "name": "vendi_embed", "settings": BY_NGRAMS, "per_device_train_batch_size": 2}


def check_log(load, runs, **settings):
    """Compare the logged rewards of each step with those of the step's completions, from all processes."""
    name = "rewards/vendi_embed_contribution_kernel_ngram/mean"
    logged = [entry for entry in runs[0]["log"] if name in entry]
    assert len(logged) == len(runs[0]["seen"]) == 2
    for step, entry in enumerate(logged):
        prompts = [prompt for run in runs for prompt in run["seen"][step][0]]
        texts = [text for run in runs for text in run["seen"][step][1]]
        assert all(len(set(prompts[i : i + 4])) == 1 for i in range(0, len(prompts), 4))
        result = load("vendi_embed").compute(predictions=texts, set_size=4, **settings)
        rewards = torch.tensor(text_metrics.contributions("vendi_embed", texts, set_size=4, **settings))
        for mean in (entry[name], entry["reward"]):
            assert mean == pytest.approx(rewards.mean().item(), abs=1e-5)
        assert entry["vendi_embed_kernel_ngram"] == pytest.approx(result["vendi_embed"], abs=1e-5)
        assert rewards.std() > 0
    assert all(run["changed"] for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "seed", "set_size"),
    [
        ("GRPO", 0, SIZE),
        ("GRPO", 3, None),
        ("RLOO", 0, None),
    ],
)
def test_a_trainer_learns_from_the_rewards(load, tmp_path, algorithm, seed, set_size):
    pytest.importorskip("trl", reason="trl is not installed")
    settings = {"set_size": set_size, "kernel": "ngram"}
    # Without a reference model, which is not there.
    arguments = {"seed": seed, "prompts": PROMPTS[:2] * 4, "algorithm": algorithm, "beta": 0.0}
    run = train(tmp_path, "vendi_embed", settings, **arguments)
    # With two prompts, two sets of one prompt are neighbours.
    assert any(len(set(prompts)) == 1 for prompts, _ in run["seen"])
    check_log(load, [run], kernel="ngram")


@pytest.mark.slow
@pytest.mark.parametrize("n_eval", [1, 2])
def test_an_evaluation_may_have_fewer_generations(tmp_path, n_eval):
    """It may come before the first step, and an evaluation of one text has no reward."""
    pytest.importorskip("trl", reason="trl is not installed")
    rewards = [text_metrics.for_rewards("vendi_embed", kernel="ngram", name="diversity"), rate_by_length]
    evaluation = {"num_generations_eval": n_eval, "eval_strategy": "steps", "eval_steps": 1, "eval_on_start": True}
    trainer = build_trainer(tmp_path, rewards, per_device_eval_batch_size=2, **evaluation)
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_rewards/diversity/mean" in entry]
    assert [entry["step"] for entry in logged] == [0, 1, 2]
    for entry in logged:
        mean = entry["eval_rewards/diversity/mean"]
        assert mean is None or math.isnan(mean) if n_eval == 1 else 0 <= mean <= 1
    trained = [entry["rewards/diversity/mean"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(trained) == 2
    assert all(math.isfinite(value) for value in trained)


@pytest.mark.slow
def test_the_trainer_says_how_many_completions_are_a_set(tmp_path):
    pytest.importorskip("trl", reason="trl is not installed")
    seen = []

    def record(completions, **columns):
        seen.append(completions)
        return [0.0] * len(completions)

    reward = text_metrics.for_rewards("vendi_embed", SIZE, kernel="ngram")
    trainer = build_trainer(tmp_path, [reward, record], num_generations=8, max_steps=1)
    with pytest.warns(UserWarning, match="set_size=4 is wrong"):
        trainer.train()
    (expected,) = text_metrics.contributions("vendi_embed", seen[0], set_size=8, kernel="ngram")
    logged = trainer.state.log_history[0]
    assert logged["rewards/vendi_embed_contribution_kernel_ngram/mean"] == pytest.approx(np.mean(expected), abs=1e-5)
    pairs = text_metrics.for_rewards("vendi_embed", kernel="ngram")
    with pytest.raises(ValueError, match="needs 3 completions"):
        build_trainer(tmp_path, [pairs], num_generations=2).train()


@pytest.mark.slow
def test_two_processes_give_what_one_gives(load, tmp_path):
    # They start once, since they import much; the trainer comes first, because it starts the group of processes itself.
    jobs = [TRAIN] if find_spec("trl") else []
    results = in_two_processes(tmp_path, "test_rewards", jobs + WHOLE + BROKEN)
    first, second = (of_rank[len(jobs) :] for of_rank in results)
    for i, job in enumerate(WHOLE):
        expected = call(make_reward(job["name"], job["settings"]))
        assert first[i] + second[i] == pytest.approx(expected, abs=1e-6), job
    assert "set_size" in first[3]
    assert second[3] == first[3]
    # Each set is logged once, so that the trainer's mean is that of the sets.
    scores = load("vendi_embed").compute(predictions=SETS, kernel="ngram")["scores"]
    assert first[4] == [["vendi_embed_kernel_ngram", pytest.approx(score, abs=1e-6)] for score in scores[:2]]
    assert second[4] == [["vendi_embed_kernel_ngram", pytest.approx(scores[2], abs=1e-6)]]
    if jobs:
        # Each holds half of a set.
        runs = [of_rank[0] for of_rank in results]
        assert all(len(texts) == 2 for run in runs for _, texts in run["seen"])
        check_log(load, runs, kernel="ngram")


# Eight texts with nothing in common.
DIFFERENT = [
    "The kettle boils.",
    "A boat is on the sea.",
    "Her cat sleeps all day.",
    "We vote on Sunday.",
    "Snow fell in the Alps.",
    "He plays the violin.",
    "Prices rose by a tenth.",
    "The bridge is closed.",
]


@pytest.mark.parametrize(
    ("name", "reward"), [(name, reward) for name, rewards in REWARDS.items() for reward in rewards if name != "gruen"]
)
def test_rewards_of_the_page_prefer_good_texts_that_differ(load, name, reward):
    """No good text is worth less than a bad one, nor two repeats as much as two different texts."""
    page = (ROOT / "docs/training.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f'| `"{reward}"`')]
    assert f"`{name}`" in row
    ratings = [1.0, 0.1] * 4
    function = text_metrics.for_rewards(load(name), reward=reward, quality=lambda: ratings)
    rewards = function(completions=DIFFERENT, prompts=["say something"] * 8)
    assert min(rewards[::2]) > 2 * max(rewards[1::2]) > 0
    repeated = function(completions=[DIFFERENT[0], *DIFFERENT[1:7], DIFFERENT[0]], prompts=["say something"] * 8)
    assert repeated[0] < min(repeated[2:7:2])


SAME = {"same": lambda left, right: [a[0] == b[0] for a, b in zip(left, right, strict=True)]}


@pytest.mark.parametrize(
    ("size", "texts", "expected"),
    [
        # (n - size) / (n - 1), of a a b a and c d c c.
        (4, ["ax", "ay", "b", "az", "c", "d", "c", "c"], [1 / 3, 1 / 3, 1, 1 / 3, 1 / 3, 1, 1 / 3, 1 / 3]),
        (5, list("aabbc"), [0.75] * 4 + [1]),
    ],
)
def test_rewards_by_the_sizes_of_classes(size, texts, expected):
    given = "semantic_entropy", size, "distinct_share"
    reward = text_metrics.for_rewards(*given, **SAME)
    assert reward(completions=texts) == pytest.approx(expected)
    half = text_metrics.for_rewards(*given, lambda completions: [0.5] * len(completions), **SAME)
    assert half(completions=texts) == pytest.approx([value / 2 for value in expected])
    assert half.__name__ == "semantic_entropy_distinct_share_times_quality_same_function"


def test_what_cannot_work_is_named(load):
    bad = [
        ("vendi_embed", "set_size", {"set_size": 2}),
        ("semantic_entropy", "set_size", {"set_size": 2, "reward": "distinct_share"}),
        ("vendi_embed", "set_size", {"set_size": 1, "quality": rate_by_length}),
        ("chamfer_diversity", "reward", {"reward": "contribution"}),
        ("vendi_embed", "set_size", {"set_size": 0}),
        ("vendi_embed", "reward", {"set_size": 4, "reward": "distinct_share"}),
        ("vendi_embed", "quality", {"set_size": 4, "quality": [0.5]}),
        ("gruen", "quality", {"quality": rate_by_length}),
        ("chamfer_diversity", "set_size", {"set_size": 2}),
        ("vendi_embed", "weights", {"set_size": 4, "weights": [1]}),
        ("vendi_embed", "order", {"set_size": 4, "order": 1}),
        ("self_bleu", "self_bleu", {"set_size": 4}),
        ("probeval", "probeval", {}),
        ("gruen", "set_size", {"set_size": 4}),
        # TRL logs a number of this name.
        ("vendi_embed", "name", {"name": "reward"}),
        ("vendi_embed", "name", {"name": ""}),
        ("vendi_embed", "name", {"name": 1}),
    ]
    for name, parameter, settings in bad:
        with pytest.raises((TypeError, ValueError), match=parameter):
            text_metrics.for_rewards(load(name), **settings)


def test_half_a_set_is_never_scored(load):
    reward = text_metrics.for_rewards(load("vendi_embed"), SIZE, kernel="ngram")
    for prompts in (ASKED[:10], None, PROMPTS):
        with pytest.raises(ValueError, match="set_size=4 for 10 completions"):
            reward(completions=TEXTS[:10], prompts=prompts)
    unsized = text_metrics.for_rewards(load("vendi_embed"), kernel="ngram")
    for prompts in (ASKED[:2] + ASKED[:10], ASKED[:4] * 2 + ASKED[4:8]):
        with pytest.raises(ValueError, match="prompts are equal in runs of"):
            call(unsized, prompts=prompts)
    with pytest.raises(ValueError, match="set_size is needed"):
        unsized(completions=TEXTS)


@pytest.mark.parametrize("set_size", [None, 3, 4, 6])
def test_the_prompts_say_what_a_set_is(load, set_size):
    """A number of completions that was raised must not give duplicates full credit."""
    reward = text_metrics.for_rewards(load("vendi_embed"), set_size, kernel="ngram")
    if set_size in (3, 6):
        with pytest.warns(UserWarning, match=f"set_size={set_size} is wrong"):
            assert call(reward) == pytest.approx(expected_rewards(load, "vendi_embed", {"kernel": "ngram"}))
    else:
        assert call(reward) == pytest.approx(expected_rewards(load, "vendi_embed", {"kernel": "ngram"}))
    doubled = TEXTS[:4] * 2
    (expected,) = text_metrics.contributions("vendi_embed", [doubled], kernel="ngram")
    rewards = reward(completions=doubled, prompts=["a"] * 8)
    assert rewards == pytest.approx(expected)
    assert max(rewards) < 0.3
    # Where runs of equal prompts differ, a prompt came twice.
    if set_size == 4:
        assert call(reward, prompts=ASKED[:4] * 2 + ASKED[4:8]) == call(reward)


def test_prompts_with_different_images_are_different(load):
    images = [np.full((2, 2), i) for i in range(3)]
    content = {"type": "text", "text": "what is this"}
    prompts = [[{"role": "user", "content": [{"type": "image", "image": image}, content]}] for image in images]
    asked = [prompts[i // SIZE] for i in range(len(TEXTS))]
    reward = text_metrics.for_rewards(load("vendi_embed"), kernel="ngram")
    assert call(reward, prompts=asked) == call(reward)


@pytest.mark.parametrize(("size", "settings"), [(1, {}), (2, {}), (1, {"quality": True})])
def test_sets_without_a_signal_end_a_training(load, size, settings):
    reward = make_reward("vendi_embed", {"kernel": "ngram", **settings})
    with pytest.raises(ValueError, match=f"needs 3 completions.*sets of {size}"):
        reward(completions=TEXTS, prompts=[str(i // size) for i in range(len(TEXTS))])


def test_two_completions_and_quality_have_a_signal(load):
    reward = make_reward("vendi_embed", {"kernel": "ngram", "quality": True})
    rewards = reward(completions=TEXTS[:2], prompts=["a"] * 2)
    assert rewards[0] != rewards[1]


HARMLESS = [
    (1.0000000000000002, 1.0),
    (np.float32(1.0000001), 1.0),
    (-1e-9, 0.0),
    (math.nan, None),
    (torch.tensor(math.nan), None),
    (None, None),
    (True, 1.0),
    (np.bool_(False), 0.0),
    (torch.tensor(0.5), 0.5),
    (np.float64(0.5), 0.5),
    (torch.tensor(True), 1.0),
    (1, 1.0),
    (torch.tensor([0.5]), 0.5),
    (Decimal("0.5"), 0.5),
    (Decimal("NaN"), None),
    (Fraction(1, 2), 0.5),
]


def test_harmless_ratings_end_no_training(load):
    """What TRL takes as a reward is a rating, if it is in [0, 1]."""
    given, expected = zip(*HARMLESS, strict=True)
    texts = TEXTS + TEXTS[:4]
    asked = ASKED + ["a"] * 4
    values = text_metrics.contributions("vendi_embed", [*SETS, SETS[0]], kernel="ngram")
    values = [value for of_set in values for value in of_set]
    products = []
    for rating, value in zip(expected, values, strict=True):
        products.append(None if rating is None else pytest.approx(rating * max(value, 0)))
    for ratings in (list(given), given, iter(given)):
        reward = text_metrics.for_rewards("vendi_embed", SIZE, quality=lambda r=ratings: r, kernel="ngram")
        assert call(reward, texts, asked) == products
    halves = (torch.full((16,), 0.5), np.full(16, 0.5), torch.full((16, 1), 0.5), map(float, [0.5] * 16))
    for ratings in halves:
        reward = text_metrics.for_rewards("vendi_embed", SIZE, quality=lambda r=ratings: r, kernel="ngram")
        assert call(reward, texts, asked) == pytest.approx([max(value, 0) / 2 for value in values])


@pytest.mark.slow
def test_a_training_goes_on_with_harmless_ratings(tmp_path):
    pytest.importorskip("trl", reason="trl is not installed")
    ratings = itertools.cycle(rating for rating, _ in HARMLESS)
    rewards = [
        text_metrics.for_rewards("vendi_embed", kernel="ngram", quality=lambda completions: map(next, [ratings] * 8)),
        rate_by_length,
    ]
    trainer = build_trainer(tmp_path, rewards)
    trainer.train()
    means = [entry[f"rewards/{rewards[0].__name__}/mean"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(means) == 2
    assert min(means) > 0


@pytest.mark.parametrize("name", ["vendi_embed", "gruen"])
def test_a_surrogate_without_its_pair_is_a_replacement_character(load, name):
    broken = ["the \ud83d\ude00 sleeps \ud83d .", *TEXTS[1:]]
    mended = ["the \U0001f600 sleeps \ufffd .", *TEXTS[1:]]
    settings = {} if name == "gruen" else {"contexts": "prompts", "model": OF_WORDS}
    reward = text_metrics.for_rewards(name, **settings)
    prompts = [f"{prompt} \udc00" for prompt in ASKED]
    assert call(reward, broken, prompts) == call(reward, mended, [f"{prompt} \ufffd" for prompt in ASKED])


def test_two_rewards_of_a_metric_have_different_names(load):
    given = [
        {},
        {"q": 2},
        {"q": 2.5, "kernel": "ngram"},
        {"model": OneHot()},
        {"contexts": "prompts"},
        {"strip": "reasoning"},
        {"quality": rate_by_length},
        {"quality": text_metrics.for_rewards("gruen")},
        {"name": "breadth"},
    ]
    rewards = [text_metrics.for_rewards(load("vendi_embed"), **settings) for settings in given]
    names = [reward.__name__ for reward in rewards]
    assert len(set(names)) == len(given)
    assert names[0] == "vendi_embed_contribution"
    assert names[-1] == rewards[-1].score_name == "breadth"
    assert all(re.fullmatch(r"[\w.-]+", name) for name in names)
    # A device does not change a number.
    assert text_metrics.for_rewards("vendi_embed", device="cpu", batch_size=4).__name__ == names[0]


@pytest.mark.slow
def test_two_rewards_of_one_name_end_a_training_at_the_start(tmp_path):
    """TRL would log the mean of both, as it would of scores of sets."""
    pytest.importorskip("trl", reason="trl is not installed")

    def build(**settings):
        return text_metrics.for_rewards("vendi_embed", **settings)

    def vendi_embed_contribution_kernel_ngram(completions, **columns):
        return [0.0] * len(completions)

    first = {"quality": lambda completions: [0.5] * len(completions)}
    second = {"quality": lambda completions: [1.0] * len(completions)}
    for rewards in (
        [build(kernel="ngram", **first), build(kernel="ngram", **second)],
        # Their rewards have different names, and their scores of sets do not.
        [build(model=OneHot()), build(model=OneHot(), **first)],
        [build(kernel="ngram"), vendi_embed_contribution_kernel_ngram],
    ):
        trainer = build_trainer(tmp_path, rewards)
        with pytest.raises(ValueError, match="name: the trainer has another reward"):
            trainer.train()
        assert trainer.state.global_step == 0
    share = {"reward": "distinct_share", **SAME}
    different = [
        build(kernel="ngram"),
        # Its scores of sets have the name of the first one's, and are the same.
        build(kernel="ngram", **first),
        text_metrics.for_rewards("semantic_entropy", **share),
        # What it multiplies by is no reward of the trainer.
        build(kernel="ngram", q=2, quality=text_metrics.for_rewards("semantic_entropy", **share)),
    ]
    trainer = build_trainer(tmp_path, different, max_steps=1)
    trainer.train()
    assert {f"rewards/{reward.__name__}/mean" for reward in different} <= trainer.state.log_history[0].keys()


@pytest.mark.parametrize("ratings", [[0.5], [0.5] * 11 + [1.5], [0.5] * 11 + [-1], [0.5] * 11 + ["x"], 0.5])
def test_wrong_ratings_are_named(load, ratings):
    reward = text_metrics.for_rewards(load("vendi_embed"), SIZE, quality=lambda **columns: ratings, kernel="ngram")
    with pytest.raises((TypeError, ValueError), match=r"^quality (of completions\[11\]|must)"):
        call(reward)


def read_programs():
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs/training.md").read_text(encoding="utf-8"), re.S)


def test_the_loop_of_the_page_runs():
    names = {}
    exec(compile(read_programs()[2], "training.md", "exec"), names)
    rewards = dict(zip(names["completions"], names["rewards"], strict=True))
    assert rewards["the cat"] < rewards["my uncle"]
    assert rewards["a boat"] < rewards["waves"]


def test_the_environment_of_the_page_rewards_attempts():
    """It is run where verifiers is installed, which needs other versions than the suite."""
    pytest.importorskip("verifiers.v1", reason="verifiers is not installed")
    import verifiers.v1 as vf
    from verifiers.v1.trace import AgentInfo, Trace, TraceTask

    names = {}
    exec(compile(read_programs()[4], "training.md", "exec"), names)
    task = vf.Task(vf.TaskData(prompt="what sleeps in the house"))
    traces = []
    for text in ("the cat", "a cat", "my uncle"):
        trace = Trace(task=TraceTask(type="task", data=task.data), agent=AgentInfo(config=vf.AgentConfig()))
        trace.root_reply = text
        traces.append(trace)
    episode = vf.Episode(task=traces[0].task, traces=traces)
    environment = object.__new__(names["DiverseEnv"])
    environment.config = types.SimpleNamespace(threshold=1.0)
    asyncio.run(environment.finalize(task, episode))
    (expected,) = text_metrics.contributions("vendi_embed", [[trace.last_reply for trace in traces]])
    assert [trace.reward for trace in traces] == pytest.approx([0.2 * value for value in expected])


ONE_PROOF = [
    "Pair 1 with 100, 2 with 99, and so on: fifty pairs of 101 make 5050.",
    "Write the row twice, once backwards. Each column adds up to 101, and half of a hundred columns gives 5050.",
    "The first and the last number have the sum 101, like each such couple, and there are fifty of them: 5050.",
    "Gauss matched opposite ends of the list, got 101 each time, and multiplied it by fifty.",
]
FOUR_PROGRAMS = [
    "def total(n): return n * (n + 1) // 2",
    "def total(n): return sum(range(n + 1))",
    "def total(n): return n + total(n - 1) if n else 0",
    "def total(n): return comb(n + 1, 2)",
]


def test_an_approach_is_not_seen(load):
    scores = load("vendi_embed").compute(predictions=[ONE_PROOF, FOUR_PROGRAMS])["scores"]
    lines = (ROOT / "docs/training.md").read_text(encoding="utf-8").splitlines()
    (sentence,) = [line for line in lines if "one proof" in line]
    assert [f"{score:.2f}" for score in scores] == re.findall(r"\b\d\.\d\d\b", sentence)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "model", "logged"),
    [
        (0, "Qwen/Qwen2.5-0.5B", "eval_samples_vendi_embed"),
        (1, "google/flan-t5-small", "eval_product"),
        (3, "Qwen/Qwen2.5-0.5B-Instruct", "vendi_embed"),
    ],
)
def test_the_programs_of_the_page_run(tmp_path, monkeypatch, part, model, logged):
    if part == 3:
        pytest.importorskip("trl", reason="trl is not installed")
    program = read_programs()[part]
    assert model in program
    tokenizer = build_tokenizer()
    (build_seq2seq if part == 1 else build_causal)(tokenizer).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    program = program.replace(f'"{model}"', '"model"').replace("GRPOConfig(", "GRPOConfig(bf16=False, use_cpu=True, ")
    names = {}
    exec(compile(program, "training.md", "exec"), names)
    log = names["trainer"].state.log_history
    assert any(logged in entry for entry in log)
    if part == 3:
        for entry in [entry for entry in log if "reward" in entry]:
            task = entry["rewards/task/mean"]
            diversity = entry["rewards/vendi_embed_contribution_times_gruen_quality/mean"]
            assert entry["reward"] == pytest.approx(task + 0.2 * diversity, abs=1e-6)
