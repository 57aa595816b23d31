"""`SampleCallback` in real runs of Trainer, SFTTrainer and GRPOTrainer, and with two processes."""

import json
import math

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from transformers import (
    DataCollatorForLanguageModeling,
    EarlyStoppingCallback,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    default_data_collator,
)
from transformers.trainer_callback import CallbackHandler

import text_metrics
from tests.commands import run_command
from tests.files import read_jsonl, write_jsonl
from tests.trainer_run import build_causal, build_seq2seq, build_tokenizer, in_two_processes, on_cpu

PROMPTS = ["what sleeps in the house", "what runs", "what do you boil tea with", "the sea", "a man sees"]
CHATS = [[{"role": "system", "content": "a"}, {"role": "user", "content": prompt}] for prompt in PROMPTS]
METRICS = {"vendi_embed": {}, "self_bleu": {"max_order": 2}, "gruen": {}}
N = 3


def build_callback(metrics=METRICS, prompts=PROMPTS, **arguments):
    arguments = {"generation": {"max_new_tokens": 8, "top_k": 0}} | arguments
    return text_metrics.SampleCallback(metrics, prompts, n=N, **arguments)


def evaluate_once(model, tokenizer, callback, folder, **arguments):
    rows = [{"input_ids": [3, 4], "labels": [3, 4]}] * 2
    args = TrainingArguments(**on_cpu(folder, **arguments))
    collator = default_data_collator
    data = {"eval_dataset": rows, "processing_class": tokenizer, "data_collator": collator}
    return Trainer(model=model, args=args, callbacks=[callback], **data).evaluate()


def main(folder, jobs):
    """Evaluate in this process of several a copy of a model and a sharded one; returns scores, and numbers of texts."""
    return [evaluate_share(folder / form, form) for form in ("copied", "sharded")]


def evaluate_share(folder, form):
    model, written = build_causal(tokenizer := build_tokenizer()), []
    if form == "sharded":
        for part in (*model.transformer.h, model):
            fully_shard(part)
        register_fsdp_forward_method(model, "generate")
    generate = model.generate
    model.generate = lambda *args, **settings: written.append(generate(*args, **settings)) or written[-1]
    # Many words end a text, so that one process is done before the other.
    generation = {"max_new_tokens": 8, "top_k": 0, "eos_token_id": list(range(1, 9))}
    callback = build_callback({"self_bleu": {"max_order": 2}}, generation=generation)
    scores = evaluate_once(model, tokenizer, callback, folder, per_device_eval_batch_size=1)
    numbers = {name: n for name, n in scores.items() if not name.endswith(("loss", "time", "second"))}
    return {"scores": numbers, "n_sampled": sum(map(len, written))}


COMMON = {"per_device_train_batch_size": 2, "per_device_eval_batch_size": 9, "save_strategy": "no", "logging_steps": 1}
COMMON |= {"max_steps": 4, "learning_rate": 0.05, "eval_strategy": "steps", "eval_steps": 2}


def build(trainer, args, rows, tokenizer, callbacks, **more):
    data = {"train_dataset": rows, "eval_dataset": rows, "processing_class": tokenizer}
    return trainer(model=build_causal(tokenizer), args=args, callbacks=callbacks, **data, **more)


def causal_trainer(folder, tokenizer, callbacks, **arguments):
    rows = [tokenizer(f"{prompt} the cat sleeps .") for prompt in PROMPTS]
    args = TrainingArguments(**on_cpu(folder, **COMMON | arguments))
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    return build(Trainer, args, rows, tokenizer, callbacks, data_collator=collator)


def sft_trainer(folder, tokenizer, callbacks):
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    rows = Dataset.from_dict({"prompt": [f"{p} " for p in PROMPTS], "completion": ["the cat sleeps ."] * len(PROMPTS)})
    args = SFTConfig(bf16=False, gradient_checkpointing=False, max_length=24, **on_cpu(folder, **COMMON))
    return build(SFTTrainer, args, rows, tokenizer, callbacks)


def grpo_trainer(folder, tokenizer, callbacks, rewards, **arguments):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    sizes = {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 4, "num_generations": 4}
    settings = on_cpu(folder, **COMMON | sizes | arguments, max_completion_length=6)
    args = GRPOConfig(bf16=False, gradient_checkpointing=False, **settings)
    rows = Dataset.from_dict({"prompt": PROMPTS})
    return build(GRPOTrainer, args, rows, tokenizer, callbacks, reward_funcs=rewards)


def check_scores(load, logged, rows, callback):
    """Compare the logged scores with those of the texts that were saved."""
    assert [row["prompt"] for row in rows] == callback.contexts
    sets = [row["texts"] for row in rows]
    assert {len(texts) for texts in sets} == {N}
    assert len({text for texts in sets for text in texts}) > len(sets)
    texts = [text for texts in sets for text in texts]
    for name, given in (
        ("vendi_embed", {"predictions": sets, "contexts": callback.contexts}),
        ("self_bleu", {"predictions": sets, "max_order": 2}),
        ("gruen", {"predictions": texts}),
    ):
        assert logged[f"eval_samples_{name}"] == pytest.approx(load(name).compute(**given)[name], abs=1e-6)
    assert logged["eval_samples_neg_self_bleu"] == -logged["eval_samples_self_bleu"]
    assert logged["eval_samples_gruen_focus"] == pytest.approx(load("gruen").compute(predictions=texts)["focus"])


@pytest.mark.slow
@pytest.mark.parametrize("make", [causal_trainer, sft_trainer])
def test_a_trainer_logs_the_scores_of_its_samples(load, tmp_path, make):
    if make is not causal_trainer:
        pytest.importorskip("trl", reason="trl is not installed")
    tokenizer = build_tokenizer(padding_side="right")
    callback = build_callback()
    trainer = make(tmp_path / "out", tokenizer, [callback])
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_samples_vendi_embed" in entry]
    assert [entry["step"] for entry in logged] == [2, 4]
    assert all("eval_runtime" in entry for entry in logged)
    rows = read_jsonl(tmp_path / "out" / "samples.jsonl")
    assert [row["step"] for row in rows] == [2] * len(PROMPTS) + [4] * len(PROMPTS)
    for entry in logged:
        check_scores(load, entry, [row for row in rows if row["step"] == entry["step"]], callback)
    assert tokenizer.padding_side == "right"
    assert "|contexts:projected|" in callback.signatures["vendi_embed"]

    # An evaluation of the same weights samples the same texts, and replaces its rows.
    again = trainer.evaluate()
    assert again["eval_samples_vendi_embed"] == logged[-1]["eval_samples_vendi_embed"]
    assert read_jsonl(tmp_path / "out" / "samples.jsonl") == rows


def test_samples_follow_from_the_weights_alone(tmp_path):
    """They do not change what is trained, nor depend on the batch or on what the tokenizer pads with."""
    tokenizer = build_tokenizer()
    plain = causal_trainer(tmp_path / "plain", tokenizer, [], seed=3)
    plain.train()
    sampled = causal_trainer(tmp_path / "sampled", tokenizer, [build_callback("self_bleu")], seed=3)
    sampled.train()
    for a, b in zip(plain.model.parameters(), sampled.model.parameters(), strict=True):
        assert torch.equal(a, b)
    tokenizer.pad_token = None
    greedy = {"do_sample": False, "num_beams": N, "max_new_tokens": 5}
    texts = []
    for size in (1, 100):
        callback = build_callback("self_bleu", path=tmp_path / f"{size}.jsonl", generation=greedy)
        evaluate_once(sampled.model, tokenizer, callback, tmp_path, per_device_eval_batch_size=size)
        texts.append(read_jsonl(tmp_path / f"{size}.jsonl"))
    assert texts[0] == texts[1]
    assert tokenizer.pad_token is None


class FewSettings(PreTrainedTokenizerFast):
    def __call__(self, text, *, return_tensors, **form):
        assert form.keys() <= {"padding", "add_special_tokens"}
        return super().__call__(text, return_tensors=return_tensors, **form)


def test_a_seq2seq_model_and_chats(load, tmp_path):
    tokenizer = build_tokenizer(padding_side="right")
    tokenizer.__class__ = FewSettings  # as that of mistral-common
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m['content'] }} {% endfor %}{% if add_generation_prompt %}a{% endif %}"
    )
    for model, prompts in ((build_seq2seq(tokenizer), PROMPTS), (build_causal(tokenizer), CHATS)):
        model.generation_config.num_beams = 1
        callback = build_callback(METRICS, prompts=prompts, path=tmp_path / "samples.txt")
        scores = evaluate_once(model, tokenizer, callback, tmp_path)
        rows = read_jsonl(tmp_path / "samples.txt")
        assert [row["prompt"] for row in rows] == PROMPTS
        check_scores(load, scores, rows, callback)


def test_best_checkpoint_by_the_samples(tmp_path):
    tokenizer = build_tokenizer()
    callback = build_callback({"vendi_embed": {"kernel": "ngram"}})
    saved = {"save_strategy": "steps", "save_steps": 2, "load_best_model_at_end": True}
    best = saved | {"metric_for_best_model": "samples_vendi_embed", "greater_is_better": True}
    stopping = EarlyStoppingCallback(early_stopping_patience=1, early_stopping_threshold=100)
    trainer = causal_trainer(tmp_path, tokenizer, [callback, stopping], max_steps=8, **best)
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_samples_vendi_embed" in entry]
    # The second score is not better by 100, so that the training stops.
    assert [entry["step"] for entry in logged] == [2, 4]
    assert all("eval_loss" in entry for entry in logged)
    scores = [entry["eval_samples_vendi_embed"] for entry in logged]
    assert scores[0] != scores[1]
    step = 2 if scores[0] > scores[1] else 4
    assert trainer.state.best_model_checkpoint == str(tmp_path / f"checkpoint-{step}")
    assert "|kernel:ngram|" in callback.signatures["vendi_embed"]


@pytest.mark.slow
def test_curves_of_tensorboard_are_those_of_the_history(load, tmp_path, monkeypatch):
    """Each quantity has a name: the policy's batches, their rewards, and the samples."""
    pytest.importorskip("trl", reason="trl is not installed")
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "curves"))
    rewards = []
    for q in (1, 2):
        rewards.append(text_metrics.for_rewards("vendi_embed", kernel="ngram", q=q))
    metrics = {"vendi_embed": {"kernel": "ngram"}, "self_bleu": {}}
    callback = build_callback(metrics, prompts=PROMPTS[:2], contexts=False)
    steps = {"max_steps": 2, "eval_steps": 1, "per_device_eval_batch_size": 20, "report_to": ["tensorboard"]}
    trainer = grpo_trainer(tmp_path / "out", build_tokenizer(), [callback], rewards, **steps)
    trainer.train()
    events = EventAccumulator(str(tmp_path / "curves"))
    events.Reload()
    curves = {}
    for tag in events.Tags()["scalars"]:
        curves[tag] = [(event.step, pytest.approx(event.value, rel=1e-5, abs=1e-7)) for event in events.Scalars(tag)]
    evaluations = [entry for entry in trainer.state.log_history if "eval_runtime" in entry]
    assert [entry["step"] for entry in evaluations] == [1, 2]
    # An evaluation is one entry of the history.
    assert sum("eval_samples_vendi_embed" in entry for entry in trainer.state.log_history) == 2
    names = ["samples_vendi_embed", "samples_neg_self_bleu", "vendi_embed_kernel_ngram_q_1"]
    names += [f"rewards/vendi_embed_contribution_kernel_ngram_q_{q}/mean" for q in (1, 2)]
    for name in names:
        assert [(entry["step"], entry[f"eval_{name}"]) for entry in evaluations] == curves[f"eval/{name}"], name
    rows = read_jsonl(tmp_path / "out" / "samples.jsonl")
    for step, value in curves["eval/samples_vendi_embed"]:
        sets = [row["texts"] for row in rows if row["step"] == step]
        assert load("vendi_embed").compute(predictions=sets, kernel="ngram")["vendi_embed"] == value
    assert "train/rewards/vendi_embed_contribution_kernel_ngram_q_1/mean" in curves


@pytest.mark.slow
def test_two_processes_share_the_prompts(load, tmp_path):
    first, second = in_two_processes(tmp_path, "test_samples")
    assert first == second
    # Of five prompts, three each.
    assert [part["n_sampled"] for part in first] == [3 * N, 3 * N]
    copied, sharded = (read_jsonl(tmp_path / form / "samples.jsonl") for form in ("copied", "sharded"))
    assert copied == sharded
    assert [row["prompt"] for row in copied] == PROMPTS
    expected = load("self_bleu").compute(predictions=[row["texts"] for row in copied], max_order=2)["self_bleu"]
    assert first[0]["scores"]["eval_samples_self_bleu"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": "probeval"}, "probeval compares"),
        ({"metrics": "vendi"}, "no metric 'vendi'"),
        ({"metrics": []}, "metrics must be different"),
        ({"metrics": ["self_bleu", "self_bleu"]}, "metrics must be different"),
        ({"metrics": {"vendi_embed": {"order": 1}}}, "'order'"),
        ({"metrics": {"vendi_embed": {"weights": [[1]]}}}, "weights cannot be given"),
        ({"metrics": {"vendi_embed": {"contexts": ["a"]}}}, "contexts cannot be given"),
        ({"prompts": "a"}, "prompts must be"),
        ({"prompts": []}, "prompts must be"),
        ({"prompts": ["a", "b", "a"]}, "prompts must be different"),
        ({"prompts": ["a", [{"role": "assistant", "content": "b"}]]}, r"prompts\[1\]"),
        ({"prompts": ["a", CHATS[0]]}, "prompts must be"),
        ({"prompts": [CHATS[0], CHATS[1], CHATS[0]]}, "prompts must be"),
        ({"n": 1}, "n must be"),
        ({"name": "a b"}, "name must be"),
        ({"name": ""}, "name must be"),
        ({"n": 4, "generation": {"num_return_sequences": 2}}, "num_return_sequences"),
        ({"n": 4, "generation": {"do_sample": False}}, "num_return_sequences"),
        ({"n": 4, "generation": {"do_sample": False, "num_beams": 2}}, "num_beams"),
        ({"generation": {"max_tokens": 5}}, "arguments of generate. Got max_tokens"),
    ],
)
def test_what_cannot_be_is_named_before_the_training(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        text_metrics.SampleCallback(**({"metrics": "vendi_embed", "prompts": ["a", "b"]} | arguments))


def begin(folder, tokenizer, *callbacks, event="on_train_begin", **arguments):
    """Call callbacks as a Trainer with these arguments does at the start of a training, or after an evaluation."""
    args = TrainingArguments(**on_cpu(folder, **COMMON | arguments))
    handler = CallbackHandler(list(callbacks), build_causal(build_tokenizer()), tokenizer, None, None)
    more = ({},) if event == "on_evaluate" else ()
    getattr(handler, event)(args, TrainerState(is_world_process_zero=True), TrainerControl(), *more)


def test_what_an_evaluation_needs_is_checked_at_the_start(tmp_path):
    tokenizer = build_tokenizer()
    path = tmp_path / "mine.jsonl"
    path.write_text('{"prompt": "a"}\n', encoding="utf-8")
    callback = build_callback("self_bleu")
    mine = build_callback("self_bleu", path=path)
    one_file = [build_callback("self_bleu", path=path.with_name("one.jsonl"), name=name) for name in ("easy", "hard")]
    stopping = {"metric_for_best_model": "eval_samples_self_bleu", "greater_is_better": False}
    for message, used, callbacks, arguments in (
        ("processing_class", None, [callback], {}),
        (r"mine\.jsonl", tokenizer, [mine], {}),
        (r"mine\.jsonl", tokenizer, [mine], {"event": "on_evaluate"}),
        ("EarlyStoppingCallback", tokenizer, [EarlyStoppingCallback(), callback], stopping),
        ("chat_template", tokenizer, [build_callback("self_bleu", prompts=CHATS)], {}),
        ("each SampleCallback needs a name", tokenizer, [callback, build_callback("gruen")], {}),
        ("each SampleCallback needs a name", tokenizer, one_file, {"event": "on_evaluate"}),
    ):
        with pytest.raises(ValueError, match=message):
            begin(tmp_path, used, *callbacks, **arguments)
    trainer = causal_trainer(tmp_path, tokenizer, [mine])
    with pytest.raises(ValueError, match=r"mine\.jsonl"):
        trainer.train()
    assert trainer.state.global_step == 0
    assert path.read_text(encoding="utf-8") == '{"prompt": "a"}\n'


class Recorder(TrainerCallback):
    """Record what an integration gets; it comes before the callbacks of a user, as integrations do."""

    def __init__(self):
        self.logged = []

    def on_log(self, args, state, control, logs=None, **trainer):
        self.logged.append(dict(logs))


class Wrapper(TrainerCallback):
    """Pass events on to a callback that the Trainer does not know."""

    def __init__(self, callback):
        self.callback = callback

    def on_train_begin(self, *arguments, **trainer):
        self.callback.on_train_begin(*arguments, **trainer)

    def on_evaluate(self, *arguments, **trainer):
        self.callback.on_evaluate(*arguments, **trainer)


def test_two_callbacks_have_different_names_and_files(tmp_path):
    tokenizer = build_tokenizer()
    recorder = Recorder()
    easy = build_callback("self_bleu", prompts=PROMPTS[:2])
    hard = Wrapper(build_callback("self_bleu", prompts=PROMPTS[2:], name="hard"))
    stopping = {"metric_for_best_model": "eval_hard_self_bleu", "greater_is_better": False}
    callbacks = [recorder, easy, hard, EarlyStoppingCallback()]
    trainer = causal_trainer(tmp_path, tokenizer, callbacks, max_steps=2, load_best_model_at_end=False, **stopping)
    trainer.train()
    (entry,) = [entry for entry in trainer.state.log_history if "eval_loss" in entry]
    for name, prompts in (("samples", PROMPTS[:2]), ("hard", PROMPTS[2:])):
        rows = read_jsonl(tmp_path / f"{name}.jsonl")
        assert [row["prompt"] for row in rows] == prompts
        score = text_metrics.load("self_bleu").compute(predictions=[row["texts"] for row in rows])["self_bleu"]
        assert entry[f"eval_{name}_self_bleu"] == pytest.approx(score)
        (logged,) = [logged for logged in recorder.logged if f"eval_{name}_self_bleu" in logged]
        # Integrations get each number once.
        assert logged[f"eval_{name}_self_bleu"] == entry[f"eval_{name}_self_bleu"]
        assert not any("hard" in other for other in logged if name == "samples")


def test_what_may_be_wrong_is_said_at_the_start(tmp_path):
    tokenizer = build_tokenizer()
    with pytest.warns(UserWarning, match="eval_strategy is 'no'"):
        begin(tmp_path, tokenizer, build_callback("self_bleu"), eval_strategy="no")
    callback = build_callback("self_bleu", prompts=["the " * 20, "a"], generation={"max_new_tokens": 13})
    with pytest.warns(UserWarning, match="33 tokens, more than the model's 32"):
        begin(tmp_path, tokenizer, callback)


def test_texts_end_at_a_stop_string(tmp_path):
    symbols = ["<pad>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bytewise = Tokenizer(models.BPE({symbol: i for i, symbol in enumerate(symbols)}, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytewise, pad_token="<pad>", eos_token="</s>")
    stops = list("abcdefghijklmnopqrstuvwxyz")
    generation = {"max_new_tokens": 20, "top_k": 0, "stop_strings": stops}
    callback = build_callback("self_bleu", ["a", "b"], generation=generation)
    evaluate_once(build_causal(tokenizer), tokenizer, callback, tmp_path)
    texts = [text for row in read_jsonl(tmp_path / "samples.jsonl") for text in row["texts"]]
    stopped = [text for text in texts if any(stop in text for stop in stops)]
    assert stopped
    assert all(text[-1] in stops and not set(text[:-1]) & set(stops) for text in stopped)


def test_outside_a_trainer_integrations_get_no_scores(tmp_path):
    tokenizer = build_tokenizer()
    args = TrainingArguments(**on_cpu(tmp_path))
    args.report_to = ["tensorboard"]
    callback = build_callback("self_bleu")
    trainer = {"model": build_causal(tokenizer), "processing_class": tokenizer}
    metrics = {"eval_runtime": 1.0}
    with pytest.warns(UserWarning, match="tensorboard will not get its scores"):
        callback.on_evaluate(args, TrainerState(), None, metrics=metrics, **trainer)
    assert metrics["eval_samples_self_bleu"] >= 0


def test_a_new_run_begins_a_new_file(tmp_path, monkeypatch, capsys):
    tokenizer = build_tokenizer()
    path = tmp_path / "samples.jsonl"
    earlier = [{"step": 6, "prompt": "a", "texts": ["b", "c", "d"]}]
    write_jsonl(path, earlier)
    saved = {"save_strategy": "steps", "save_steps": 2}
    trainer = causal_trainer(tmp_path, tokenizer, [build_callback("self_bleu")], **saved)
    with pytest.warns(UserWarning, match=r"It is now samples\.1\.jsonl"):
        trainer.evaluate()
    # The training goes on with the file of the evaluation before it.
    trainer.train()
    rows = read_jsonl(path)
    assert sorted({row["step"] for row in rows}) == [0, 2, 4]
    assert read_jsonl(tmp_path / "samples.1.jsonl") == earlier
    # A run that is resumed continues its file.
    resumed = causal_trainer(tmp_path, tokenizer, [build_callback("self_bleu")], **saved | {"max_steps": 6})
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert sorted({row["step"] for row in read_jsonl(path)}) == [0, 2, 4, 6]
    assert read_jsonl(path)[: 2 * len(PROMPTS)] == rows[: 2 * len(PROMPTS)]
    # Its steps are systems.
    keys = ["--text-key", "texts", "--id-key", "prompt", "--system-key", "step"]
    words = ["--metric", "self_bleu", *keys, "--systems", "4", "0", "--out", tmp_path / "out"]
    assert run_command(monkeypatch, "compare", path, *words) == 0
    result = json.loads((tmp_path / "out").read_text(encoding="utf-8"))
    assert result["systems"] == ["4", "0"]
    sets = {}
    for row in read_jsonl(path):
        sets.setdefault(row["step"], []).append(row["texts"])
    for side, step in (("a", 4), ("b", 0)):
        expected = text_metrics.load("self_bleu").compute(predictions=sets[step])["self_bleu"]
        assert result[side]["mean"] == pytest.approx(expected)
    for given in (["4", "5"], ["4", "4"]):
        words = ["--metric", "self_bleu", *keys, "--systems", *given]
        assert run_command(monkeypatch, "compare", path, *words) == 2
        assert "--systems" in capsys.readouterr().err
    words = [*keys, "--quality", "none", "--quiet", "--out", tmp_path / "report"]
    assert run_command(monkeypatch, "report", path, *words) == 0
    written = (tmp_path / "report" / "report.json").read_text(encoding="utf-8")
    assert all(f'"{step}"' in written for step in (0, 2, 4, 6))


def test_settings_of_the_chat_template_and_whole_chats(tmp_path):
    tokenizer = build_tokenizer()
    words = "{{ thinks | default('yes') }} {{ role | default('any') }}"
    tokenizer.chat_template = words + "{% for m in messages %} {{ m['content'] }}{% endfor %}"
    rendered = []
    encode = type(tokenizer).__call__

    class Recording(type(tokenizer)):
        def __call__(self, text, **form):
            rendered.append(text)
            return encode(self, text, **form)

    tokenizer.__class__ = Recording
    model = build_causal(tokenizer)
    chats = []
    for first in ("the cat", "the dog"):
        chats.append([{"role": "user", "content": first}, {"role": "user", "content": "what runs"}])
    chats.append([{"role": "user", "content": "the sea"}])
    callback = build_callback("self_bleu", prompts=chats, chat_template_kwargs={"role": "me"})
    args = TrainingArguments(**on_cpu(tmp_path))
    # As TRL's have it.
    args.chat_template_kwargs = {"thinks": "no", "role": "you"}
    callback.on_evaluate(args, TrainerState(), None, model=model, processing_class=tokenizer)
    assert rendered[0][0] == "no me the cat what runs"
    plain = build_callback("self_bleu", prompts=chats, path=tmp_path / "plain.jsonl")
    evaluate_once(model, tokenizer, plain, tmp_path, per_device_eval_batch_size=100)
    assert rendered[-1][1] == "yes any the dog what runs"
    # Chats that end alike are named by the whole.
    prompts = [row["prompt"] for row in read_jsonl(tmp_path / "plain.jsonl")]
    assert prompts == [json.dumps(chats[0]), json.dumps(chats[1]), "the sea"]


def test_empty_texts_are_not_the_most_diverse(tmp_path):
    tokenizer = build_tokenizer()
    model = build_causal(tokenizer)
    metrics = {"self_bleu": {"confidence": 0.9}, "vendi_embed": {}}
    callback = build_callback(metrics, generation={"max_new_tokens": 3, "suppress_tokens": range(2, len(tokenizer))})
    scores = evaluate_once(model, tokenizer, callback, tmp_path)
    assert {text for row in read_jsonl(tmp_path / "samples.jsonl") for text in row["texts"]} == {""}
    assert math.isnan(scores["eval_samples_self_bleu"])
    assert math.isnan(scores["eval_samples_neg_self_bleu"])
    assert "eval_samples_self_bleu_confidence_low" not in scores
    assert scores["eval_samples_self_bleu_distinct_1"] == 0
    assert scores["eval_samples_vendi_embed"] == pytest.approx(1)
