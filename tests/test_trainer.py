"""`for_trainer`: by hand with token ids, in real runs of the Trainer, and with two processes."""

import json
import os

import numpy as np
import pytest
import torch
from transformers import DataCollatorForSeq2Seq, EvalPrediction, Trainer, TrainingArguments

import text_metrics
from tests import programs
from tests.conftest import ROOT
from tests.trainer_run import build_causal, build_dataset, build_seq2seq, build_tokenizer, build_trainer, run

TEXTS = [
    "the couple walks to the park .",
    "a man takes his dog to the park .",
    "the cat sleeps on the red house .",
    "a cat sleeps on a house .",
    "the dog runs by the sea .",
    "the dog runs by the sea .",
    "a woman sings in the train .",
    "it rains on her boats .",
    "the man sees old boats .",
    "a train runs to the sea .",
    "a kettle to boil water",
    "the woman takes a train .",
]
PROMPTS = ["what do you boil tea with"] * 4 + ["what runs on the sea"] * 4 + ["what sleeps in the house"] * 4
ANSWERS = ["kettle", "pot", "kettle", "cup", "boats", "boats", "dog", "train", "cat", "dog", "cat", "cat"]
SETTINGS = [
    ("vendi_embed", {"set_size": 4, "q": [1, 0.5]}),
    ("vendi_embed", {"group_by": "inputs", "confidence": 0.9}),
    ("vendi_embed", {}),
    ("chamfer_diversity", {"set_size": 2, "confidence": 0.9}),
    ("self_bleu", {"set_size": 4, "max_order": 2}),
    ("self_bleu", {"group_by": "inputs", "aggregate": "sentence", "tokenizer": "13a"}),
    ("gruen", {"confidence": 0.9}),
    ("gruen", {"group_by": "inputs", "confidence": 0.9}),
    ("gruen", {"set_size": 4, "components": ["non_redundancy"]}),
    ("probeval", {"set_size": 4}),
    ("probeval", {"group_by": "inputs", "confidence": 0.95, "matcher": "cosine", "debias": True}),
    ("semantic_entropy", {"set_size": 4, "confidence": 0.9}),
]
each_setting = pytest.mark.parametrize(("name", "settings"), SETTINGS)


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


def to_ids(tokenizer, texts, fill=-100, length=12):
    """Token ids as the Trainer gives them: one array, filled up."""
    ids = np.full((len(texts), length), fill)
    for row, text in zip(ids, texts, strict=True):
        tokens = [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
        row[: len(tokens)] = tokens
    return ids


def evaluation(tokenizer, texts=TEXTS, labels=ANSWERS, inputs=PROMPTS):
    return EvalPrediction(
        predictions=to_ids(tokenizer, texts),
        label_ids=to_ids(tokenizer, labels),
        inputs=None if inputs is None else to_ids(tokenizer, inputs),
    )


def expected_result(load, name, settings):
    settings = dict(settings)
    set_size, grouped = settings.pop("set_size", None), "group_by" in settings
    settings.pop("group_by", None)
    if name == "gruen":
        size = 4 if grouped else set_size or 1
        settings["confidence_by"] = [i // size for i in range(len(TEXTS))]
        return load(name).compute(predictions=TEXTS, **settings)
    size = 4 if grouped else set_size or len(TEXTS)
    sets = [TEXTS[i : i + size] for i in range(0, len(TEXTS), size)]
    if name == "probeval":
        settings["references"] = [ANSWERS[i : i + size] for i in range(0, len(TEXTS), size)]
    return load(name).compute(predictions=sets, **settings)


def check_numbers(found, expected, name):
    assert all(type(value) is float for value in found.values())
    assert found[name] == pytest.approx(expected[name], abs=1e-6)
    for key, value in expected.items():
        if isinstance(value, (int, float)):
            assert found.pop(key) == pytest.approx(value, abs=1e-6)
        elif isinstance(value, dict):
            for inner, number in value.items():
                assert found.pop(f"{key}_{inner}") == pytest.approx(number, abs=1e-6)
        elif key.endswith("confidence_interval"):
            stem = key.removesuffix("interval")
            assert [found.pop(f"{stem}low"), found.pop(f"{stem}high")] == pytest.approx(value, abs=1e-6)
    for key in [key for key in found if key.startswith("neg_")]:
        assert found.pop(key) == pytest.approx(-expected[key.removeprefix("neg_")], abs=1e-6)
    assert found == {}


def test_decreasing_results_also_come_negated(load, tokenizer):
    found = text_metrics.for_trainer(load("self_bleu"), tokenizer, set_size=4, max_order=2, repetition=True)(
        evaluation(tokenizer)
    )
    names = ("self_bleu", "self_bleu_1", "self_bleu_2", "compression_ratio", "self_repetition_2")
    assert all(found[f"neg_{name}"] == -found[name] for name in names)
    assert not {"neg_distinct_1", "neg_entropy_1"} & set(found)
    found = text_metrics.for_trainer(load("probeval"), tokenizer, group_by="labels")(evaluation(tokenizer))
    assert found["neg_probeval"] == -found["probeval"] < 0
    assert "neg_coverage" not in found


@each_setting
def test_generations_are_scored_as_their_texts(load, tokenizer, name, settings):
    compute_metrics = text_metrics.for_trainer(load(name), tokenizer, **settings)
    expected = expected_result(load, name, settings)
    check_numbers(compute_metrics(evaluation(tokenizer)), expected, name)
    assert compute_metrics.signature == expected["signature"]


def test_generations_of_several_for_each_example(load, tokenizer):
    compute_metrics = text_metrics.for_trainer(load("vendi_embed"), tokenizer, set_size=4)
    whole = evaluation(tokenizer)
    few = EvalPrediction(whole.predictions, whole.label_ids[::4])
    assert compute_metrics(few) == pytest.approx(compute_metrics(whole))
    by_label = text_metrics.for_trainer(load("probeval"), tokenizer, group_by="labels")
    assert by_label(few)["n_clusters"] == 1.0


@pytest.mark.parametrize("column", ["inputs", "labels"])
def test_contexts_are_the_inputs_or_labels(load, tokenizer, column):
    asked = {"inputs": PROMPTS, "labels": ["kettle"] * 4 + ["boats"] * 4 + ["cat"] * 4}[column]
    whole = evaluation(tokenizer, labels=asked if column == "labels" else ANSWERS)
    expected = load("vendi_embed").compute(predictions=TEXTS, set_size=4, contexts=asked[::4])
    for sets in ({"set_size": 4}, {"group_by": column}):
        compute_metrics = text_metrics.for_trainer("vendi_embed", tokenizer, contexts=column, **sets)
        check_numbers(compute_metrics(whole), expected, "vendi_embed")
        assert compute_metrics.signature == expected["signature"]
    with pytest.raises(ValueError, match="contexts must be equal"):
        text_metrics.for_trainer("vendi_embed", tokenizer, contexts=column)(whole)
    with pytest.raises(ValueError, match="contexts='inputs' needs include_for_metrics"):
        text_metrics.for_trainer("vendi_embed", tokenizer, contexts="inputs")(evaluation(tokenizer, inputs=None))


def test_groups_of_different_sizes(load, tokenizer):
    prompts = [*PROMPTS[:5], *PROMPTS[8:], *[PROMPTS[4]] * 3]
    sets = [TEXTS[:4], TEXTS[4:5], TEXTS[5:9], TEXTS[9:]]
    expected = load("self_bleu").compute(predictions=sets, max_order=2, singletons="skip")
    whole = evaluation(tokenizer, inputs=[*prompts[:4], "the sea", *prompts[5:]])
    compute_metrics = text_metrics.for_trainer(
        load("self_bleu"), tokenizer, group_by="inputs", max_order=2, singletons="skip"
    )
    check_numbers(compute_metrics(whole), expected, "self_bleu")


@pytest.mark.parametrize(
    "change",
    [
        lambda ids: (ids, np.zeros((12, 3, 5))),
        lambda ids: torch.tensor(ids),
        lambda ids: np.where(ids == -100, 0, ids).astype(np.int32),
        lambda ids: np.pad(ids, ((0, 0), (0, 7)), constant_values=-100),
    ],
    ids=["tuple", "tensor", "padding token", "filled up"],
)
def test_forms_of_predictions(load, tokenizer, change):
    compute_metrics = text_metrics.for_trainer(load("vendi_embed"), tokenizer, set_size=4, kernel="ngram")
    whole = evaluation(tokenizer)
    expected = compute_metrics(whole)
    assert compute_metrics(EvalPrediction(change(whole.predictions), whole.label_ids)) == expected


def test_prompts_are_taken_off(load, tokenizer):
    compute_metrics = text_metrics.for_trainer(load("self_bleu"), tokenizer, set_size=4)
    expected = compute_metrics(evaluation(tokenizer))
    with_prompts = [f"{prompt} {text}" for prompt, text in zip(PROMPTS, TEXTS, strict=True)]
    inputs = [tokenizer(prompt)["input_ids"] for prompt in PROMPTS]
    filled = np.full((12, 9), -100)
    for row, ids in zip(filled, inputs, strict=True):
        row[: len(ids)] = ids
    whole = EvalPrediction(to_ids(tokenizer, with_prompts, length=20), to_ids(tokenizer, ANSWERS), inputs=filled)
    assert compute_metrics(whole) == expected


def test_a_mean_over_nothing_is_nan(load, tokenizer):
    compute_metrics = text_metrics.for_trainer(load("chamfer_diversity"), tokenizer, set_size=1, singletons="skip")
    found = compute_metrics(evaluation(tokenizer))
    assert np.isnan(found.pop("chamfer_diversity"))
    assert found == {"n_singletons": 12.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings", "best"),
    [("vendi_embed", {"kernel": "ngram"}, "vendi_embed"), ("self_bleu", {"max_order": 2}, "neg_self_bleu")],
)
def test_seq2seq_trainer_chooses_the_best_checkpoint(load, tokenizer, tmp_path, name, settings, best):
    dataset = build_dataset(tokenizer, 10)
    compute_metrics = text_metrics.for_trainer(load(name), tokenizer, set_size=2, **settings)
    trainer = build_trainer(
        tmp_path,
        build_seq2seq(tokenizer, num_return_sequences=2),
        tokenizer,
        compute_metrics,
        dataset,
        num_train_epochs=2,
        learning_rate=0.05,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model=best,
    )
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if f"eval_{best}" in entry]
    assert [entry["epoch"] for entry in logged] == [1.0, 2.0]
    scores = [entry[f"eval_{name}"] for entry in logged]
    assert scores[0] != scores[1]
    most_diverse = int(np.argmax(scores) if best == name else np.argmin(scores))
    assert trainer.state.best_model_checkpoint == str(tmp_path / f"checkpoint-{3 * (1 + most_diverse)}")

    # The best model is back; what it writes scores the same by hand.
    inputs = tokenizer.pad([{"input_ids": example["input_ids"]} for example in dataset], return_tensors="pt")
    written = trainer.model.generate(**{key: inputs[key] for key in ("input_ids", "attention_mask")})
    texts = [text.strip() for text in tokenizer.batch_decode(written, skip_special_tokens=True)]
    expected = load(name).compute(predictions=texts, set_size=2, **settings)
    assert trainer.evaluate()[f"eval_{name}"] == pytest.approx(expected[name])
    assert expected[name] == pytest.approx(scores[most_diverse])


def test_logits_of_the_prompt_and_the_padding_are_not_scored(load, tokenizer, tmp_path):
    # As in docs/training.md.
    def to_tokens(logits, labels):
        return torch.where(labels[:, 1:] != -100, logits[:, :-1].argmax(-1), -100)

    dataset, texts, model = [], [], build_causal(tokenizer).eval()
    for prompt, text in zip(PROMPTS, TEXTS, strict=True):
        asked, answer = tokenizer(prompt)["input_ids"], tokenizer(text)["input_ids"]
        dataset.append({"input_ids": asked + answer, "labels": [-100] * len(asked) + answer})
        with torch.no_grad():
            likeliest = model(torch.tensor([asked + answer])).logits[0].argmax(-1)
        texts.append(tokenizer.decode(likeliest[len(asked) - 1 : -1], skip_special_tokens=True))

    def evaluate(preprocess, **arguments):
        arguments |= {"use_cpu": True, "report_to": [], "disable_tqdm": True, "dataloader_pin_memory": False}
        return Trainer(
            model=model,
            args=TrainingArguments(output_dir=str(tmp_path), per_device_eval_batch_size=5, **arguments),
            eval_dataset=dataset,
            # Padding on the right, as in training: with a mask, the padding changes no prediction.
            data_collator=DataCollatorForSeq2Seq(build_tokenizer(padding_side="right")),
            compute_metrics=text_metrics.for_trainer(load("self_bleu"), tokenizer, set_size=4, max_order=2),
            preprocess_logits_for_metrics=preprocess,
        ).evaluate()

    expected = load("self_bleu").compute(predictions=texts, set_size=4, max_order=2)
    found = evaluate(to_tokens, eval_accumulation_steps=1)
    assert found["eval_self_bleu"] == pytest.approx(expected["self_bleu"], abs=1e-6)
    with pytest.raises(TypeError, match="logits"):
        evaluate(None)


JOBS = [
    # 7 and 9 examples do not divide by 2 processes of 2 examples each.
    {"name": "vendi_embed", "settings": {"set_size": 3}, "num_return_sequences": 3, "n_examples": 7},
    {"name": "chamfer_diversity", "settings": {"confidence": 0.9, "set_size": 3}, "n_examples": 9},
    {"name": "self_bleu", "settings": {"group_by": "inputs", "singletons": "skip"}, "n_examples": 9},
    {"name": "probeval", "settings": {"group_by": "inputs"}, "n_examples": 9},
    {"name": "gruen", "settings": {}, "n_examples": 7},
]


def to_arguments(job):
    return {"per_device_eval_batch_size": 2, "include_for_metrics": ["inputs"], **job}


@pytest.mark.slow
def test_two_processes_give_what_one_gives(tmp_path):
    jobs = [to_arguments(job) for job in [*JOBS, {**JOBS[-1], "known": False}]]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    program = "from tests import trainer_run\ntrainer_run.in_two_processes(trainer_run.main)\n"
    done = programs.run(
        program, tmp_path / "jobs.json", env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in range(2)]
    assert found[0] == found[1]
    for i, job in enumerate(JOBS):
        assert found[0][i] == pytest.approx(run(tmp_path / "one", **to_arguments(job)), abs=1e-6), job
    assert "n_examples" in found[0][-1]["error"]


def test_predictions_that_cannot_be_read(load, tokenizer):
    logits, ids = np.zeros((12, 5, 40), dtype=np.float32), np.zeros((24, 2), dtype=np.int64)
    bad = [
        logits,
        (torch.from_numpy(logits), torch.zeros(3)),
        ids[:12, 0],
        np.full((12, 2), "a"),
        ids[:13],
        ids,
        ids[:6],
        (),
    ]
    for predictions in bad:
        compute_metrics = text_metrics.for_trainer(load("vendi_embed"), tokenizer, set_size=4)
        with pytest.raises((TypeError, ValueError), match="predictions"):
            compute_metrics(EvalPrediction(predictions, to_ids(tokenizer, ANSWERS)))
    for predictions in (ids, ids[:0]):
        with pytest.raises(ValueError, match=f"predictions must .* Got {len(predictions)} for 0 labels"):
            text_metrics.for_trainer(load("vendi_embed"), tokenizer)(EvalPrediction(predictions, ids[:0]))
    inputs = to_ids(tokenizer, PROMPTS[:5])
    with pytest.raises(ValueError, match="inputs must be as many"):
        text_metrics.for_trainer(load("gruen"), tokenizer)(
            EvalPrediction(to_ids(tokenizer, TEXTS), to_ids(tokenizer, ANSWERS), inputs=inputs)
        )


@each_setting
def test_batches_give_what_one_call_gives(load, tokenizer, name, settings):
    settings = settings if settings.keys() & {"set_size", "group_by"} else {**settings, "set_size": 4}
    compute_metrics = text_metrics.for_trainer(load(name), tokenizer, **settings)
    whole = evaluation(tokenizer)
    expected = compute_metrics(whole)
    # The end of an evaluation that failed is no part of the next.
    with pytest.raises(TypeError, match="labels"):
        compute_metrics(EvalPrediction(whole.predictions, None), compute_result=False)
    for _ in range(2):
        for start in (0, 5, 10):
            part = slice(start, start + 5)
            # In a batch, the Trainer passes all inputs of the model.
            inputs = {"input_ids": torch.from_numpy(whole.inputs[part])}
            batch = EvalPrediction(whole.predictions[part], whole.label_ids[part], inputs=inputs)
            found = compute_metrics(batch, compute_result=start == 10)
            assert start == 10 or found == {}
        assert found == expected


@pytest.mark.slow
def test_trainer_evaluates_by_batches(tmp_path):
    job = {"name": "vendi_embed", "settings": {"group_by": "inputs"}, "n_examples": 7, "per_device_eval_batch_size": 2}
    job |= {"include_for_metrics": ["inputs"], "num_return_sequences": 2}
    expected = run(tmp_path, **job)
    assert run(tmp_path, batch_eval_metrics=True, **job) == pytest.approx(expected, abs=1e-6)
    assert expected["eval_vendi_embed"] > 1


def test_settings_that_cannot_be(load, tokenizer):
    bad = [
        ("vendi_embed", "orders", {"orders": 2}),
        ("vendi_embed", "embeddings", {"embeddings": [[1]]}),
        ("vendi_embed", "contexts", {"contexts": PROMPTS}),
        ("vendi_embed", "contexts", {"contexts": "prompts"}),
        ("self_bleu", "set_size", {"set_size": 0}),
        ("self_bleu", "n_examples", {"n_examples": 0}),
        ("self_bleu", "group_by", {"set_size": 2, "group_by": "inputs"}),
        ("self_bleu", "group_by", {"group_by": "prompts"}),
    ]
    for name, parameter, settings in bad:
        with pytest.raises((TypeError, ValueError), match=parameter):
            text_metrics.for_trainer(load(name), tokenizer, **settings)
    with pytest.raises(TypeError, match="tokenizer"):
        text_metrics.for_trainer(load("self_bleu"), "gpt2")


def test_what_the_trainer_does_not_give(load, tokenizer):
    whole = evaluation(tokenizer, inputs=None)
    with pytest.raises(ValueError, match="group_by"):
        text_metrics.for_trainer(load("vendi_embed"), tokenizer, group_by="inputs")(whole)
    with pytest.raises(TypeError, match="labels"):
        text_metrics.for_trainer(load("vendi_embed"), tokenizer)(EvalPrediction(whole.predictions, None))
