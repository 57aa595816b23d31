"""`SampleCallback` in real runs of Trainer, SFTTrainer and GRPOTrainer, and with two processes."""

import pytest
import torch
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from transformers import (
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerState,
    TrainingArguments,
    default_data_collator,
)

import text_metrics
from tests.commands import run_command
from tests.files import read_jsonl
from tests.trainer_run import build_causal, build_seq2seq, build_tokenizer, in_two_processes, on_cpu

PROMPTS = ["what sleeps in the house", "what runs", "what do you boil tea with", "the sea", "a man sees"]
CHATS = [[{"role": "system", "content": "a"}, {"role": "user", "content": prompt}] for prompt in PROMPTS]
METRICS = {"vendi_embed": {}, "chamfer_diversity": {}, "self_bleu": {"max_order": 2}, "gruen": {}}
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
    callback = build_callback(generation={"max_new_tokens": 8, "top_k": 0, "eos_token_id": list(range(1, 9))})
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


def grpo_trainer(folder, tokenizer, callbacks):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    sizes = {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 4, "num_generations": 4}
    settings = on_cpu(folder, **COMMON | sizes, max_completion_length=6)
    args = GRPOConfig(bf16=False, gradient_checkpointing=False, **settings)
    reward = text_metrics.for_rewards("vendi_embed", 4, kernel="ngram")
    rows = Dataset.from_dict({"prompt": PROMPTS})
    return build(GRPOTrainer, args, rows, tokenizer, callbacks, reward_funcs=reward)


def check_scores(load, logged, rows, callback):
    """Compare the logged scores with those of the texts that were saved."""
    assert [row["prompt"] for row in rows] == callback.contexts
    sets = [row["texts"] for row in rows]
    assert {len(texts) for texts in sets} == {N}
    assert len({text for texts in sets for text in texts}) > len(sets)
    texts = [text for texts in sets for text in texts]
    contexts = {"contexts": callback.contexts}
    for name, given in (
        ("vendi_embed", {"predictions": sets, **contexts}),
        ("chamfer_diversity", {"predictions": sets, **contexts}),
        ("self_bleu", {"predictions": sets, "max_order": 2}),
        ("gruen", {"predictions": texts}),
    ):
        assert logged[f"eval_samples_{name}"] == pytest.approx(load(name).compute(**given)[name], abs=1e-6)
    assert logged["eval_samples_neg_self_bleu"] == -logged["eval_samples_self_bleu"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [causal_trainer, sft_trainer, grpo_trainer])
def test_a_trainer_logs_the_scores_of_its_samples(load, tmp_path, monkeypatch, make):
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
    words = ["--system-key", "step", "--id-key", "prompt", "--text-key", "texts", "--quality", "none", "--quiet"]
    report = ["report", tmp_path / "out" / "samples.jsonl", "--out", tmp_path / "report", *words]
    assert run_command(monkeypatch, *report) == 0
    written = (tmp_path / "report" / "report.json").read_text(encoding="utf-8")
    assert all(step in written for step in ('"2"', '"4"'))


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
    trainer = causal_trainer(tmp_path, tokenizer, [callback], metric_for_best_model="samples_vendi_embed", **saved)
    callback.log = trainer.log
    trainer.train()
    scores = [e["eval_samples_vendi_embed"] for e in trainer.state.log_history if {"eval_samples_vendi_embed", "eval_loss"} <= e.keys()]
    assert scores[0] != scores[1]
    best = tmp_path / f"checkpoint-{2 if scores[0] > scores[1] else 4}"
    assert trainer.state.best_model_checkpoint == str(best)
    # What the function `log` got is an entry of its own.
    alone = [entry for entry in trainer.state.log_history if "eval_samples_vendi_embed" in entry and "eval_loss" not in entry]
    assert [entry["eval_samples_vendi_embed"] for entry in alone] == scores
    assert "|kernel:ngram|" in callback.signatures["vendi_embed"]


@pytest.mark.slow
def test_two_processes_share_the_prompts(load, tmp_path):
    first, second = in_two_processes(tmp_path, "test_samples")
    assert first == second
    # Of five prompts, three each.
    assert [part["n_sampled"] for part in first] == [3 * N, 3 * N]
    copied, sharded = (read_jsonl(tmp_path / form / "samples.jsonl") for form in ("copied", "sharded"))
    assert copied == sharded
    check_scores(load, first[0]["scores"], copied, build_callback())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": "probeval"}, "probeval compares"),
        ({"metrics": "vendi"}, "no metric 'vendi'"),
        ({"metrics": {"vendi_embed": {"order": 1}}}, "'order'"),
        ({"metrics": {"vendi_embed": {"weights": [[1]]}}}, "weights cannot be given"),
        ({"metrics": {"vendi_embed": {"contexts": ["a"]}}}, "contexts cannot be given"),
        ({"prompts": "a"}, "prompts must be"),
        ({"prompts": []}, "prompts must be"),
        ({"prompts": ["a", "b", "a"]}, "prompts must be different"),
        ({"prompts": ["a", [{"role": "assistant", "content": "b"}]]}, r"prompts\[1\]"),
        ({"n": 1}, "n must be"),
    ],
)
def test_what_cannot_be_is_named_before_the_training(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        text_metrics.SampleCallback(**({"metrics": "vendi_embed", "prompts": ["a", "b"]} | arguments))


def test_a_file_of_other_rows_is_not_replaced(tmp_path):
    tokenizer = build_tokenizer()
    path = tmp_path / "mine.jsonl"
    path.write_text('{"prompt": "a"}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"mine\.jsonl"):
        evaluate_once(build_causal(tokenizer), tokenizer, build_callback("self_bleu", path=path), tmp_path)
    assert path.read_text(encoding="utf-8") == '{"prompt": "a"}\n'
    arguments = TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to=[])
    with pytest.raises(ValueError, match="processing_class"):
        build_callback("self_bleu").on_evaluate(arguments, TrainerState(), None, model=build_causal(tokenizer))
