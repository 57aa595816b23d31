"""Sample texts from the model that trains, and score them, at each evaluation."""

import copy
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import TrainerCallback

from text_metrics.core_api import QUESTIONS, as_list, parse_count, split_list
from text_metrics.files.storage import parse_json, write_jsonl
from text_metrics.training.common import (
    CONTEXTS,
    Stripper,
    compute_of_sets,
    gather,
    name_numbers,
    read_metric,
    read_prompt,
)


class SampleCallback(TrainerCallback):
    """Sample, score and save texts at each evaluation of a Trainer of `transformers` or TRL.

    The scores are added to the metrics and the log of the evaluation, as `eval_<name>`; `log`, if set to `trainer.log`,
    passes them to integrations such as W&B. `signatures` holds those of the last scores by metric.

    Parameters
    ----------
    metrics : a metric of sets or texts, loaded or by name, a list of them, or a dict from names to settings
    prompts : different texts, or chats, each a list of messages
    n : number of texts of each prompt, which are a set
    generation : arguments of `generate`; by default `do_sample=True` and `max_new_tokens=64`
    contexts : whether metrics that take `contexts` get the prompts; of a chat, the last message of the user
    strip : what is removed from texts before they are scored, because it is not the answer: "reasoning", "special"
        (tokens and chat markers), "prompt", as a list or with commas between them; `path` has whole texts
    path : JSON Lines of the texts, by `step` and `prompt`; `samples.jsonl` in the Trainer's `output_dir` by default

    Raises
    ------
    TypeError, ValueError
        For invalid arguments; at an evaluation, if the Trainer has no tokenizer, or the file other rows.
    """

    log: Any = None

    def __init__(
        self,
        metrics: Any,
        prompts: Any,
        n: int = 8,
        generation: Any = None,
        contexts: bool = True,
        path: Any = None,
        strip: Any = None,
    ) -> None:
        self.strip = Stripper(strip)
        self.prompts = as_list(prompts, "prompts", "a list of texts or of chats")
        self.contexts = [read_prompt(prompt, f"prompts[{i}]") for i, prompt in enumerate(self.prompts)]
        if not self.prompts or len(set(self.contexts)) < len(self.prompts):
            raise ValueError("prompts must be different texts, or chats with different last messages of the user.")
        self.n = parse_count(n, "n", 2)
        self.path = path
        self.generation = {"do_sample": True, "max_new_tokens": 64, **(generation or {})}
        self.metrics: list[tuple[Any, dict[str, Any]]] = []
        self.signatures: dict[str, str] = {}
        are_several = isinstance(metrics, Iterable) and not isinstance(metrics, str)
        for each in metrics if are_several else [metrics]:
            settings = dict(metrics[each]) if isinstance(metrics, Mapping) else {}
            metric = read_metric(each, settings, "SampleCallback")
            if metric.items == QUESTIONS:
                raise ValueError(f"metrics must score texts or sets of texts: {metric.name} compares with references.")
            given = {CONTEXTS: self.contexts} if contexts else {}
            with suppress(TypeError, ValueError):  # not every metric takes contexts, nor with all of its settings
                metric.settings.read(settings | given, metric.name)
                settings |= given
            self.metrics.append((metric, settings))

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **trainer: Any) -> None:
        """Sample, score, log and save: the Trainer calls this after an evaluation, in all processes."""
        if (tokenizer := trainer.get("processing_class")) is None:
            raise ValueError("SampleCallback needs a tokenizer: pass it to the Trainer as processing_class.")
        # A processor holds the tokenizer; sampling changes its padding.
        tokenizer = copy.deepcopy(getattr(tokenizer, "tokenizer", tokenizer))
        sets = self._sample(trainer["model"], tokenizer, args)
        scores_by_rank, _ = gather(self._score(sets) if state.is_world_process_zero else None)
        scores = scores_by_rank[0]
        prefixes = (name.removesuffix("_runtime") for name in metrics or () if name.endswith("_runtime"))
        prefix = next(prefixes, "eval")
        named = {f"{prefix}_{name}": value for name, value in scores.items()}
        for logged in filter(None, (metrics, *state.log_history[-1:])):
            logged.update(named)
        if self.log is not None:
            self.log(named)
        if state.is_world_process_zero:
            path = Path(self.path or Path(args.output_dir) / "samples.jsonl")
            step = state.global_step
            try:
                lines = path.read_bytes().splitlines() if path.exists() else []
                rows = [row for row in map(parse_json, lines) if row["step"] < step]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"path {str(path)!r} has rows that are not samples.") from error
            rows += [{"step": step, "prompt": self.contexts[i], "texts": texts} for i, texts in enumerate(sets)]
            write_jsonl(path, rows)

    def _sample(self, model: Any, tokenizer: Any, args: Any) -> list[list[str]]:
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        is_seq2seq = model.config.is_encoder_decoder
        is_chat = not isinstance(self.prompts[0], str)
        # A decoder continues the end of a row.
        tokenizer.padding_side = tokenizer.padding_side if is_seq2seq else "left"
        form = {"tokenize": False, "add_generation_prompt": True}
        prompts = tokenizer.apply_chat_template(self.prompts, **form) if is_chat else self.prompts
        processes, rank = gather(None)
        # All processes call the model equally often, which they must if it is sharded.
        share = -(-len(prompts) // len(processes))
        batch_size = max(1, args.per_device_eval_batch_size // self.n)
        places = [(rank * share + i) % len(prompts) for i in range(share)]
        texts = []
        was_training = model.training
        with torch.random.fork_rng({weights.device for weights in model.parameters() if weights.is_cuda}):
            torch.manual_seed(args.seed + rank)
            model.eval()
            for start in range(0, share, batch_size):
                batch = [prompts[i] for i in places[start : start + batch_size]]
                # Not every tokenizer takes other settings, and not every model what other tokenizers return.
                encoded = tokenizer(batch, padding=True, add_special_tokens=not is_chat, return_tensors="pt")
                inputs = {name: encoded[name].to(model.device) for name in ("input_ids", "attention_mask")}
                settings = {"num_return_sequences": self.n, "pad_token_id": tokenizer.pad_token_id}
                ids = model.generate(
                    input_ids=inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    **(settings | self.generation),
                )
                # A decoder-only model repeats the prompt before its generation.
                n_prompt_ids = 0 if is_seq2seq else inputs["input_ids"].shape[1]
                generated = tokenizer.batch_decode(ids[:, n_prompt_ids:], skip_special_tokens=True)
                texts += [text.strip() for text in generated]
            model.train(was_training)
        sets = [texts[i : i + self.n] for i in range(0, len(texts), self.n)]
        by_rank, _ = gather(dict(zip(places, sets, strict=True)))
        by_prompt: dict[int, list[str]] = {}
        for sets_by_place in by_rank:
            by_prompt |= sets_by_place
        return [by_prompt[i] for i in range(len(prompts))]

    def _score(self, sets: list[list[str]]) -> dict[str, float]:
        named: dict[str, float] = {}
        prompts = [prompt for prompt, texts in zip(self.contexts, sets, strict=True) for _ in texts]
        answers = self.strip([text for texts in sets for text in texts], prompts)
        sizes = np.array([len(texts) for texts in sets])
        sets = split_list(answers, sizes)
        for metric, settings in self.metrics:
            result = compute_of_sets(metric, sets, settings)
            self.signatures[metric.name] = self.strip.sign(result["signature"])
            named |= name_numbers(metric, result)
        return named
