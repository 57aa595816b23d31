"""Sample texts from the model that trains, and score them, at each evaluation."""

import copy
import inspect
import itertools
import json
import traceback
from collections import ChainMap
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from transformers import EarlyStoppingCallback, GenerationConfig, GenerationMixin, TrainerCallback
from transformers.trainer_callback import CallbackHandler

from text_metrics.core_api import QUESTIONS, as_list, describe, parse_count, warn
from text_metrics.files.storage import parse_json, write_jsonl
from text_metrics.stripping import Stripper
from text_metrics.training.common import (
    CONTEXTS,
    compute_of_sets,
    gather,
    name_numbers,
    read_metric,
    read_prompt,
)


class SampleCallback(TrainerCallback):
    """Sample, score and save texts at each evaluation of a Trainer of `transformers` or TRL.

    The scores are added to the metrics and the log of the evaluation, as `eval_samples_<name>`, and passed to the
    Trainer's integrations, such as TensorBoard and W&B. `signatures` holds those of the last scores by metric. Outside
    a Trainer of `transformers`, only the metrics and the log have them.

    Parameters
    ----------
    metrics : a metric of sets or texts, loaded or by name, a list of them, or a dict from names to settings
    prompts : different texts, or different chats, each a list of messages
    n : number of texts of each prompt, which are a set
    generation : arguments of `generate`; by default `do_sample=True` and `max_new_tokens=64`
    contexts : whether metrics that take `contexts` get the prompts; of a chat, the last message of the user
    strip : what is removed from texts before they are scored, because it is not the answer: "reasoning", "special"
        (tokens and chat markers), "prompt", as a list or with commas between them; `path` has whole texts
    path : JSON Lines of the texts, by `step` and `prompt`; `samples.jsonl` in the Trainer's `output_dir` by default. A
        run that starts at step 0 renames the file of an earlier one
    name : of the scores and the file in place of "samples"; a second callback of a Trainer needs its own
    chat_template_kwargs : of the chat template, such as `{"enable_thinking": False}`, beside those of the Trainer

    Raises
    ------
    TypeError, ValueError
        For invalid arguments; at the start of a training, or at an evaluation without one, if the Trainer has no
        tokenizer, the file has other rows, another SampleCallback has the same name or path, or an
        EarlyStoppingCallback that needs a score comes first.
    """

    def __init__(
        self,
        metrics: Any,
        prompts: Any,
        n: int = 8,
        generation: Any = None,
        contexts: bool = True,
        path: Any = None,
        strip: Any = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        name: str = "samples",
    ) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"name must be an identifier, such as 'samples'. Got {describe(name)}.")
        self.name = name
        self.strip = Stripper(strip)
        self.prompts = as_list(prompts, "prompts", "a list of texts or of chats")
        self.contexts = [read_prompt(prompt, f"prompts[{i}]") for i, prompt in enumerate(self.prompts)]
        self.ids = _ids(self.prompts, self.contexts)
        self.is_chat = not isinstance(self.prompts[0], str)
        self.chat_template_kwargs = dict(chat_template_kwargs or {})
        self.n = parse_count(n, "n", 2)
        self.path = path
        self.generation = {"do_sample": True, "max_new_tokens": 64, "num_return_sequences": self.n}
        self.generation |= generation or {}
        if self.generation["num_return_sequences"] != self.n:
            raise ValueError(f"generation: num_return_sequences must be n. Got {self.generation} for n={self.n}.")
        known = GenerationConfig().to_dict().keys() & self.generation.keys()
        unknown = self.generation.keys() - known - inspect.signature(GenerationMixin.generate).parameters.keys()
        if unknown:
            raise ValueError(f"generation must have arguments of generate. Got {', '.join(sorted(unknown))}.")
        # It raises a ValueError, such as for fewer beams than texts.
        GenerationConfig(**{name: self.generation[name] for name in known})
        self._has_started = False
        self.metrics: list[tuple[Any, dict[str, Any]]] = []
        self.signatures: dict[str, str] = {}
        are_several = isinstance(metrics, Iterable) and not isinstance(metrics, str)
        for each in metrics if are_several else [metrics]:
            settings = dict(metrics[each] or {}) if isinstance(metrics, Mapping) else {}
            metric = read_metric(each, settings, "SampleCallback")
            if metric.items == QUESTIONS:
                raise ValueError(f"metrics must score texts or sets of texts: {metric.name} compares with references.")
            given = {CONTEXTS: self.contexts} if contexts else {}
            with suppress(TypeError, ValueError):  # not every metric takes contexts, nor with all of its settings
                metric.settings.read(settings | given, metric.name)
                settings |= given
            self.metrics.append((metric, settings))
        names = [metric.name for metric, _ in self.metrics]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"metrics must be different metrics, at least one. Got {describe(names)}.")

    def on_train_begin(self, args: Any, state: Any, control: Any, **trainer: Any) -> None:
        """Check what evaluations need, and begin the file: the Trainer calls this at the start of a training."""
        if args.eval_strategy == "no":
            warn("SampleCallback samples at evaluations, and eval_strategy is 'no': this training has none.")
        self._start(args, state, trainer)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **trainer: Any) -> None:
        """Sample, score, log and save: the Trainer calls this after an evaluation, in all processes."""
        if not self._has_started:
            self._start(args, state, trainer)
        tokenizer = _read_tokenizer(trainer)
        sets = self._sample(trainer["model"], tokenizer, args)
        scores_by_rank, _ = gather(self._score(sets) if state.is_world_process_zero else None)
        scores = scores_by_rank[0]
        prefixes = (name.removesuffix("_runtime") for name in metrics or () if name.endswith("_runtime"))
        prefix = next(prefixes, "eval")
        named = {f"{prefix}_{self.name}_{name}": value for name, value in scores.items()}
        for logged in filter(None, (metrics, *state.log_history[-1:])):
            logged.update(named)
        if handler := _calling_handler():
            # `Trainer.log` would make a further entry of the history.
            handler.on_log(args, state, control, named)
        if state.is_world_process_zero:
            path = self._path(args)
            step = state.global_step
            rows = [row for row in _read_samples(path) if row["step"] < step]
            rows += [{"step": step, "prompt": self.ids[i], "texts": texts} for i, texts in enumerate(sets)]
            write_jsonl(path, rows)

    def _start(self, args: Any, state: Any, trainer: Mapping[str, Any]) -> None:
        """Check what evaluations need, and begin the file."""
        tokenizer = _read_tokenizer(trainer)
        config = trainer["model"].config
        n_positions = getattr(config, "max_position_embeddings", None)
        n_tokens = self._encode(tokenizer, self._render(tokenizer, args))["input_ids"].shape[1]
        n_tokens += self.generation["max_new_tokens"] or 0
        if n_positions is not None and n_tokens > n_positions and not config.is_encoder_decoder:
            warn(f"prompts and max_new_tokens have up to {n_tokens} tokens, more than the model's {n_positions}.")
        handler = _calling_handler()
        if handler is not None:
            self._check_callbacks(handler.callbacks, args)
        elif args.report_to:
            warn(f"SampleCallback is not called by a Trainer: {', '.join(args.report_to)} will not get its scores.")
        if state.is_world_process_zero:
            self._begin_file(args, state)
        self._has_started = True

    def _check_callbacks(self, callbacks: list[TrainerCallback], args: Any) -> None:
        """Raise a ValueError if another callback has the same name or path, or needs the scores before they exist."""
        for callback in callbacks:
            if not isinstance(callback, SampleCallback) or callback is self:
                continue
            if callback.name == self.name or callback._path(args) == self._path(args):
                raise ValueError(
                    "callbacks: each SampleCallback needs a name= and a path= of its own. Got two with "
                    f"name={self.name!r}, {callback.name!r}, path={str(self._path(args))!r}."
                )
        earlier = callbacks[: callbacks.index(self)] if self in callbacks else []
        is_needed = f"{self.name}_" in str(args.metric_for_best_model)
        if is_needed and any(isinstance(callback, EarlyStoppingCallback) for callback in earlier):
            raise ValueError(
                "callbacks: SampleCallback must come before EarlyStoppingCallback, which needs its "
                f"{args.metric_for_best_model}."
            )

    def _path(self, args: Any) -> Path:
        return Path(self.path or Path(args.output_dir) / f"{self.name}.jsonl")

    def _begin_file(self, args: Any, state: Any) -> None:
        """Rename the file of an earlier run if this one starts at step 0; it may have evaluated before."""
        path = self._path(args)
        rows = _read_samples(path)
        is_earlier = not self._has_started or any(row["step"] > 0 for row in rows)
        if state.global_step == 0 and rows and is_earlier:
            paths = (path.with_stem(f"{path.stem}.{i}") for i in itertools.count(1))
            kept = next(each for each in paths if not each.exists())
            path.rename(kept)
            warn(f"{path} is of an earlier run. It is now {kept.name}.")

    def _render(self, tokenizer: Any, args: Any) -> list[str]:
        """Return the prompts as texts, chats through the template."""
        if not self.is_chat:
            return self.prompts
        settings = (getattr(args, "chat_template_kwargs", None) or {}) | self.chat_template_kwargs
        return tokenizer.apply_chat_template(self.prompts, tokenize=False, add_generation_prompt=True, **settings)

    def _encode(self, tokenizer: Any, prompts: list[str]) -> Any:
        # Not every tokenizer takes other settings.
        return tokenizer(prompts, padding=True, add_special_tokens=not self.is_chat, return_tensors="pt")

    def _sample(self, model: Any, tokenizer: Any, args: Any) -> list[list[str]]:
        is_seq2seq = model.config.is_encoder_decoder
        # A decoder continues the end of a row.
        tokenizer.padding_side = tokenizer.padding_side if is_seq2seq else "left"
        prompts = self._render(tokenizer, args)
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
                # Not every model takes what other tokenizers return.
                encoded = self._encode(tokenizer, batch)
                inputs = {name: encoded[name].to(model.device) for name in ("input_ids", "attention_mask")}
                settings = {"pad_token_id": tokenizer.pad_token_id}
                if "stop_strings" in self.generation:
                    settings["tokenizer"] = tokenizer
                ids = model.generate(**(inputs | settings | self.generation))
                # A decoder-only model repeats the prompt before its generation.
                n_prompt_ids = 0 if is_seq2seq else inputs["input_ids"].shape[1]
                generated = tokenizer.batch_decode(ids[:, n_prompt_ids:], skip_special_tokens=True)
                texts += [text.strip() for text in generated]
            model.train(was_training)
        sets = [texts[i : i + self.n] for i in range(0, len(texts), self.n)]
        by_rank, _ = gather(dict(zip(places, sets, strict=True)))
        by_prompt = dict(ChainMap(*by_rank))
        return [by_prompt[i] for i in range(len(prompts))]

    def _score(self, sets: list[list[str]]) -> dict[str, float]:
        named: dict[str, float] = {}
        answers = self.strip.sets(sets, self.contexts)
        for metric, settings in self.metrics:
            result = compute_of_sets(metric, answers, settings)
            self.signatures[metric.name] = self.strip.sign(result["signature"])
            named |= name_numbers(metric, result)
        return named


def _ids(prompts: list[Any], contexts: list[str]) -> list[str]:
    """Return what names each prompt in the file: its context, or the whole chat where another has the same.

    Raises a ValueError unless prompts are different texts, or different chats.
    """
    wholes = [prompt if isinstance(prompt, str) else json.dumps(prompt, default=str) for prompt in prompts]
    forms = {isinstance(prompt, str) for prompt in prompts}
    if len(forms) != 1 or len(set(wholes)) < len(wholes):
        raise ValueError("prompts must be different texts, or all of them different chats.")
    return [whole if contexts.count(context) > 1 else context for whole, context in zip(wholes, contexts, strict=True)]


def _read_tokenizer(trainer: Mapping[str, Any]) -> Any:
    """Return a copy of the tokenizer, because sampling changes its padding; it is part of a processor."""
    tokenizer = trainer.get("processing_class")
    if tokenizer is None:
        raise ValueError("SampleCallback needs a tokenizer: pass it to the Trainer as processing_class.")
    tokenizer = copy.deepcopy(getattr(tokenizer, "tokenizer", tokenizer))
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return tokenizer


def _read_samples(path: Path) -> list[dict[str, Any]]:
    """Read the rows of samples from a file, which may be missing; raises a ValueError for rows of other files."""
    try:
        rows = [parse_json(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        return [row for row in rows if row["step"] >= 0]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"path {str(path)!r} has rows that are not samples.") from error


def _calling_handler() -> CallbackHandler | None:
    """Return the CallbackHandler that calls this callback, which a Trainer passes to none; None without one.

    A Trainer logs before `on_evaluate`, and its integrations come before the callbacks of a user: nothing that such a
    callback can change reaches them.
    """
    for frame, _ in traceback.walk_stack(inspect.currentframe()):
        caller = frame.f_locals.get("self")
        if isinstance(caller, CallbackHandler):
            return caller
    return None
