"""`for_trainer`: by hand with token ids, in real runs of the Trainer, and with two processes."""

import numpy as np
import pytest
import torch
from transformers import DataCollatorForSeq2Seq, EvalPrediction, Trainer, TrainingArguments

import text_metrics
from tests import trainer_run
from tests.trainer_run import TEXTS, build_causal, build_seq2seq, build_tokenizer, in_two_processes, on_cpu
from text_metrics.metrics._core.core_results import result_numbers

PROMPTS = [prompt for prompt in trainer_run.PROMPTS for _ in range(4)]
ANSWERS = ["kettle", "pot", "kettle", "cup", "boats", "boats", "dog", "train", "cat", "dog", "cat", "cat"]
SETTINGS = [
    ("vendi_embed", {"set_size": 4, "q": [1, 0.5], "confidence": 0.9}),
    ("vendi_embed", {"kernel": "ngram"}),
    ("chamfer_diversity", {"set_size": 2, "confidence": 0.9}),
    ("self_bleu", {"group_by": "inputs", "aggregate": "sentence", "tokenizer": "13a"}),
    ("gruen", {"confidence": 0.9}),
    ("gruen", {"group_by": "inputs", "confidence": 0.9}),
    ("probeval", {"group_by": "inputs", "confidence": 0.95}),
    ("semantic_entropy", {"set_size": 4}),
]


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


def expected_result(load, name, set_size=None, group_by=None, **settings):
    size = 4 if group_by else set_size or (1 if name == "gruen" else len(TEXTS))
    sets = [TEXTS[i : i + size] for i in range(0, len(TEXTS), size)]
    if name == "gruen":
        owners = [i // size for i in range(len(TEXTS))]
        return load(name).compute(predictions=TEXTS, confidence_by=owners, **settings)
    if name == "probeval":
        settings["references"] = [ANSWERS[i : i + size] for i in range(0, len(TEXTS), size)]
    return load(name).compute(predictions=sets, **settings)


def check_numbers(logged, expected, name):
    """Compare what is logged with a result of `compute`: numbers, ends of intervals, and negated numbers.

    Each name has that of the metric in it.
    """
    assert all(type(value) is float for value in logged.values())
    assert logged[name] == pytest.approx(expected[name], abs=1e-6)
    numbers = {key: value for key, value in result_numbers(expected) if value is not None}
    for key, value in expected.items():
        if key.endswith("confidence_interval"):
            stem = key.removesuffix("interval")
            numbers |= {f"{stem}low": value[0], f"{stem}high": value[1]}
    numbers = {key if name in key else f"{name}_{key}": value for key, value in numbers.items()}
    negated = {key: -numbers[key.removeprefix("neg_")] for key in logged if key.startswith("neg_")}
    assert logged == pytest.approx(numbers | negated, abs=1e-6)


def test_decreasing_results_also_come_negated(load, tokenizer):
    settings = {"set_size": 4, "max_order": 2, "repetition": True}
    logged = text_metrics.for_trainer(load("self_bleu"), tokenizer, **settings)(evaluation(tokenizer))
    names = ("self_bleu", "self_bleu_1", "self_bleu_2", "self_bleu_compression_ratio", "self_bleu_self_repetition_2")
    assert all(logged[f"neg_{name}"] == -logged[name] for name in names)
    assert not {"neg_self_bleu_distinct_1", "neg_self_bleu_entropy_1"} & set(logged)
    logged = text_metrics.for_trainer(load("probeval"), tokenizer, group_by="labels")(evaluation(tokenizer))
    assert logged["neg_probeval"] == -logged["probeval"] < 0
    assert "probeval_coverage" in logged
    assert "neg_probeval_coverage" not in logged


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_generations_are_scored_as_their_texts(load, tokenizer, name, settings):
    """By one call, and by batches, after which the next evaluation begins."""
    compute_metrics = text_metrics.for_trainer(load(name), tokenizer, **settings)
    whole = evaluation(tokenizer)
    expected = expected_result(load, name, **settings)
    logged = compute_metrics(whole)
    check_numbers(logged, expected, name)
    assert compute_metrics.signature == expected["signature"]
    # It can be a key, as any function.
    assert compute_metrics in {compute_metrics}
    # An evaluation that failed is no part of the next.
    compute_metrics(whole, compute_result=False)
    with pytest.raises(TypeError, match="labels"):
        compute_metrics(EvalPrediction(whole.predictions, None), compute_result=False)
    for _ in range(2):
        for part in (slice(0, 5), slice(5, 10), slice(10, 15)):
            # In a batch, the Trainer passes all inputs of the model.
            inputs = {"input_ids": torch.from_numpy(whole.inputs[part])}
            batch = EvalPrediction(whole.predictions[part], whole.label_ids[part], inputs=inputs)
            assert compute_metrics(batch, compute_result=part.start == 10) == (logged if part.start == 10 else {})


def test_empty_generations_are_not_the_most_diverse(load, tokenizer):
    compute_metrics = text_metrics.for_trainer(load("self_bleu"), tokenizer, set_size=4, confidence=0.9)
    logged = compute_metrics(evaluation(tokenizer, texts=[""] * len(TEXTS)))
    assert np.isnan([logged["self_bleu"], logged["neg_self_bleu"]]).all()
    assert "self_bleu_confidence_low" not in logged
    assert logged["self_bleu_distinct_1"] == 0


def test_results_of_all_metrics_can_be_merged(load, tokenizer):
    """None of their numbers has the name of one of the other."""
    settings = {"set_size": 4, "confidence": 0.9}
    whole = evaluation(tokenizer)
    results = []
    for name in text_metrics.METRICS:
        results.append(text_metrics.for_trainer(load(name), tokenizer, **settings)(whole))
    merged = {}
    for result in results:
        merged |= result
    assert len(merged) == sum(map(len, results))
    assert merged["vendi_embed_confidence_low"] < merged["vendi_embed"]


def test_generations_of_several_for_each_example(load, tokenizer):
    compute_metrics = text_metrics.for_trainer(load("vendi_embed"), tokenizer, set_size=4)
    whole = evaluation(tokenizer)
    few = EvalPrediction(whole.predictions, whole.label_ids[::4])
    assert compute_metrics(few) == pytest.approx(compute_metrics(whole))
    by_label = text_metrics.for_trainer(load("probeval"), tokenizer, group_by="labels")
    assert by_label(few)["probeval_n_clusters"] == 1.0


@pytest.mark.parametrize("column", ["inputs", "labels"])
def test_contexts_are_the_inputs_or_labels(load, tokenizer, column):
    contexts = {"inputs": PROMPTS, "labels": ["kettle"] * 4 + ["boats"] * 4 + ["cat"] * 4}[column]
    whole = evaluation(tokenizer, labels=contexts if column == "labels" else ANSWERS)
    expected = load("vendi_embed").compute(predictions=TEXTS, set_size=4, contexts=contexts[::4])
    for sets in ({"set_size": 4}, {"group_by": column}):
        compute_metrics = text_metrics.for_trainer("vendi_embed", tokenizer, contexts=column, **sets)
        check_numbers(compute_metrics(whole), expected, "vendi_embed")
        assert compute_metrics.signature == expected["signature"]
    with pytest.raises(ValueError, match="contexts must be equal"):
        text_metrics.for_trainer("vendi_embed", tokenizer, contexts=column)(whole)
    for name in ("contexts", "group_by"):
        with pytest.raises(ValueError, match=f"{name}='inputs' needs include_for_metrics"):
            text_metrics.for_trainer("vendi_embed", tokenizer, **{name: "inputs"})(evaluation(tokenizer, inputs=None))


def test_groups_of_different_sizes(load, tokenizer):
    prompts = PROMPTS[:5] + PROMPTS[8:] + [PROMPTS[4]] * 3
    sets = [TEXTS[:4], TEXTS[4:5], TEXTS[5:9], TEXTS[9:]]
    expected = load("self_bleu").compute(predictions=sets, max_order=2, singletons="skip")
    prompts[4] = "the sea"
    whole = evaluation(tokenizer, inputs=prompts)
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
    with_prompts = [f"{prompt} {text}" for prompt, text in zip(PROMPTS, TEXTS, strict=True)]
    ids = tokenizer(PROMPTS, padding=True, padding_side="right", return_tensors="np")["input_ids"]
    filled = np.where(ids == tokenizer.pad_token_id, -100, ids)
    whole = EvalPrediction(to_ids(tokenizer, with_prompts, length=20), to_ids(tokenizer, ANSWERS), inputs=filled)
    assert compute_metrics(whole) == compute_metrics(evaluation(tokenizer))


def test_a_mean_over_nothing_is_nan(load, tokenizer):
    compute_metrics = text_metrics.for_trainer(load("chamfer_diversity"), tokenizer, set_size=1, singletons="skip")
    logged = compute_metrics(evaluation(tokenizer))
    assert np.isnan(logged.pop("chamfer_diversity"))
    assert logged == {"chamfer_diversity_n_singletons": 12.0}


@pytest.mark.slow
def test_seq2seq_trainer_chooses_the_best_checkpoint(load, tokenizer, tmp_path):
    dataset = trainer_run.build_dataset(tokenizer, 10)
    compute_metrics = text_metrics.for_trainer(load("self_bleu"), tokenizer, set_size=2, max_order=2)
    each_epoch = dict.fromkeys(("eval_strategy", "save_strategy", "logging_strategy"), "epoch")
    choice = {"load_best_model_at_end": True, "metric_for_best_model": "neg_self_bleu", **each_epoch}
    model = build_seq2seq(tokenizer, num_return_sequences=2)
    more = {"num_train_epochs": 2, "learning_rate": 0.05, **choice}
    trainer = trainer_run.build_trainer(tmp_path, model, tokenizer, compute_metrics, dataset, **more)
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_neg_self_bleu" in entry]
    assert [entry["epoch"] for entry in logged] == [1.0, 2.0]
    scores = [entry["eval_self_bleu"] for entry in logged]
    assert scores[0] != scores[1]
    most_diverse = int(np.argmin(scores))
    assert trainer.state.best_model_checkpoint == str(tmp_path / f"checkpoint-{3 * (1 + most_diverse)}")

    # The best model is back; what it writes scores the same by hand.
    inputs = tokenizer.pad([{"input_ids": example["input_ids"]} for example in dataset], return_tensors="pt")
    written = trainer.model.generate(**{key: inputs[key] for key in ("input_ids", "attention_mask")})
    texts = [text.strip() for text in tokenizer.batch_decode(written, skip_special_tokens=True)]
    expected = load("self_bleu").compute(predictions=texts, set_size=2, max_order=2)["self_bleu"]
    assert trainer.evaluate()["eval_self_bleu"] == pytest.approx(expected)
    assert expected == pytest.approx(scores[most_diverse])


def test_logits_of_the_prompt_and_the_padding_are_not_scored(load, tokenizer, tmp_path):
    # As in docs/training.md.
    def to_tokens(logits, labels):
        return torch.where(labels[:, 1:] != -100, logits[:, :-1].argmax(-1), -100)

    dataset = []
    texts = []
    model = build_causal(tokenizer).eval()
    for prompt, text in zip(PROMPTS, TEXTS, strict=True):
        start = tokenizer(prompt)["input_ids"]
        answer = tokenizer(text)["input_ids"]
        dataset.append({"input_ids": start + answer, "labels": [-100] * len(start) + answer})
        with torch.no_grad():
            likeliest = model(torch.tensor([start + answer])).logits[0].argmax(-1)
        texts.append(tokenizer.decode(likeliest[len(start) - 1 : -1], skip_special_tokens=True))

    def evaluate(preprocess, **arguments):
        return Trainer(
            model=model,
            args=TrainingArguments(**on_cpu(tmp_path, per_device_eval_batch_size=5, **arguments)),
            eval_dataset=dataset,
            # Padding on the right, as in training: with a mask, the padding changes no prediction.
            data_collator=DataCollatorForSeq2Seq(build_tokenizer(padding_side="right")),
            compute_metrics=text_metrics.for_trainer(load("self_bleu"), tokenizer, set_size=4, max_order=2),
            preprocess_logits_for_metrics=preprocess,
        ).evaluate()

    expected = load("self_bleu").compute(predictions=texts, set_size=4, max_order=2)
    scores = evaluate(to_tokens, eval_accumulation_steps=1)
    assert scores["eval_self_bleu"] == pytest.approx(expected["self_bleu"], abs=1e-6)
    with pytest.raises(TypeError, match="logits"):
        evaluate(None)


BY_NGRAMS = {"set_size": 3, "kernel": "ngram"}
JOBS = [
    # 7 and 9 examples do not divide by 2 processes of 2 examples each.
    {"name": "vendi_embed", "settings": BY_NGRAMS, "num_return_sequences": 3, "n_examples": 7},
    {"name": "self_bleu", "settings": {"group_by": "inputs", "singletons": "skip"}, "n_examples": 9},
]


def to_arguments(job):
    return {"per_device_eval_batch_size": 2, "include_for_metrics": ["inputs"], **job}


@pytest.mark.slow
def test_two_processes_give_what_one_gives(tmp_path):
    jobs = [to_arguments(job) for job in [*JOBS, {**JOBS[-1], "known": False}]]
    first, second = in_two_processes(tmp_path, "trainer_run", jobs)
    assert first == second
    for of_two, job in zip(first[:-1], JOBS, strict=True):
        assert of_two == pytest.approx(trainer_run.run(tmp_path / "one", **to_arguments(job)), abs=1e-6), job
    assert "n_examples" in first[-1]["error"]


@pytest.mark.slow
def test_trainer_evaluates_by_batches(tmp_path):
    job = to_arguments({**JOBS[0], "settings": {"group_by": "inputs", "kernel": "ngram"}})
    expected = trainer_run.run(tmp_path, **job)
    assert trainer_run.run(tmp_path, batch_eval_metrics=True, **job) == pytest.approx(expected, abs=1e-6)
    assert expected["eval_vendi_embed"] > 1


IDS = np.zeros((24, 2), dtype=np.int64)
LOGITS = np.zeros((12, 5, 40), dtype=np.float32)


@pytest.mark.parametrize(
    "predictions", [LOGITS, (torch.from_numpy(LOGITS),), IDS[:12, 0], np.full((12, 2), "a"), IDS[:13], IDS, IDS[:6], ()]
)
def test_predictions_that_cannot_be_read(load, tokenizer, predictions):
    compute_metrics = text_metrics.for_trainer(load("vendi_embed"), tokenizer, set_size=4)
    with pytest.raises((TypeError, ValueError), match="predictions"):
        compute_metrics(EvalPrediction(predictions, to_ids(tokenizer, ANSWERS)))


def test_labels_and_inputs_that_cannot_be_read(load, tokenizer):
    compute_metrics = text_metrics.for_trainer(load("gruen"), tokenizer)
    for predictions in (IDS, IDS[:0]):
        with pytest.raises(ValueError, match=f"predictions must .* Got {len(predictions)} for 0 labels"):
            compute_metrics(EvalPrediction(predictions, IDS[:0]))
    with pytest.raises(ValueError, match="inputs must be as many"):
        compute_metrics(evaluation(tokenizer, inputs=PROMPTS[:5]))


def test_settings_that_cannot_be(load, tokenizer):
    bad = [
        ("vendi_embed", "orders", {"orders": 2}),
        ("vendi_embed", "embeddings", {"embeddings": [[1]]}),
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
