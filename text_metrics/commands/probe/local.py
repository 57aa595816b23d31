"""Sample answers from a causal language model of transformers."""

import hashlib
import json
import sys
from typing import TYPE_CHECKING, NamedTuple

from tqdm import tqdm

from text_metrics.commands.probe.files import Asked, Shot, completion, messages
from text_metrics.commands.shared.causal import CausalModel, load_causal
from text_metrics.commands.shared.chat import Journal

if TYPE_CHECKING:
    import torch


class Sampling(NamedTuple):
    """How answers are sampled.

    temperature : > 0; the whole distribution of the model is sampled, at this temperature
    max_tokens : the maximum length of an answer, in tokens
    batch_size : answers to a question that are sampled at a time
    """

    temperature: float = 1.0
    max_tokens: int = 32
    batch_size: int = 64
    seed: int = 0


class Sampler:
    """A causal language model that answers questions, on a GPU in bfloat16 where there is one."""

    def __init__(self, model: str, sampling: Sampling) -> None:
        if sampling.temperature <= 0:
            raise ValueError(f"--temperature must be above 0 with --local. Got {sampling.temperature}.")
        for name in ("max_tokens", "batch_size"):
            if getattr(sampling, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1. Got {getattr(sampling, name)}.")
        import torch

        dtype = "bfloat16" if torch.cuda.is_available() else "float32"
        self._loaded: CausalModel = load_causal(model, dtype)
        self._sampling = sampling
        self.identity = self._loaded.identity

    def ask(self, questions: list[Asked], shots: list[Shot], samples: int, journal: Journal) -> list[list[str]]:
        """Sample raw answers to each question that the journal does not hold, and keep them there as they come.

        After an interruption, the answers so far are returned.
        """
        prompts = [self._encode(question, shots) for question in questions]
        keys = [
            [self._key(question, ids, i) for i in range(samples)]
            for question, ids in zip(questions, prompts, strict=True)
        ]
        missing = sum(key not in journal.answers for sample_keys in keys for key in sample_keys)
        with tqdm(total=missing, unit="answer", file=sys.stderr) as bar:
            try:
                for ids, sample_keys in zip(prompts, keys, strict=True):
                    left = [key for key in sample_keys if key not in journal.answers]
                    for start in range(0, len(left), self._sampling.batch_size):
                        batch = left[start : start + self._sampling.batch_size]
                        for key, (text, n_tokens) in zip(batch, self._sample(ids, len(batch), batch[0]), strict=True):
                            tokens = [ids.shape[1], n_tokens]
                            journal.add({"key": key, "answer": text, "tokens": tokens})
                            bar.update()
            except KeyboardInterrupt:
                print("Interrupted. Run the same command to continue.", file=sys.stderr)
        return [
            [journal.answers[key][0]["answer"] for key in sample_keys if key in journal.answers] for sample_keys in keys
        ]

    def _encode(self, question: Asked, shots: list[Shot]) -> "torch.Tensor":
        tokenizer = self._loaded.tokenizer
        if tokenizer.chat_template:
            text = tokenizer.apply_chat_template(messages(question, shots), add_generation_prompt=True, tokenize=False)
            return tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
        return tokenizer(completion(question, shots), return_tensors="pt")["input_ids"]

    def _key(self, question: Asked, ids: "torch.Tensor", sample: int) -> str:
        """Name an answer by all that decides it, other than the size of a batch."""
        sampling = self._sampling
        decisive = [
            self.identity,
            question.id,
            ids[0].tolist(),
            sampling.temperature,
            sampling.max_tokens,
            sampling.seed,
            sample,
        ]
        return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:32]

    def _sample(self, ids: "torch.Tensor", count: int, name: str) -> list[tuple[str, int]]:
        """Sample answers, each with its number of tokens, padding included."""
        import torch
        from transformers import GenerationConfig

        tokenizer, model = self._loaded.tokenizer, self._loaded.model
        end = model.generation_config.eos_token_id
        end = tokenizer.eos_token_id if end is None else end
        first_end = end[0] if isinstance(end, list) else end
        config = GenerationConfig(
            do_sample=True,
            temperature=self._sampling.temperature,
            top_k=0,
            top_p=1.0,
            repetition_penalty=1.0,
            max_new_tokens=self._sampling.max_tokens,
            num_return_sequences=count,
            eos_token_id=end,
            stop_strings=None if tokenizer.chat_template else ["\n"],
            pad_token_id=first_end if tokenizer.pad_token_id is None else tokenizer.pad_token_id,
        )
        torch.manual_seed(int(name[:15], 16))
        ids = ids.to(self._loaded.device)
        with torch.inference_mode():
            sequences = model.generate(
                ids, attention_mask=torch.ones_like(ids), generation_config=config, tokenizer=tokenizer
            )
        answers = sequences[:, ids.shape[1] :]
        texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
        return [(text, answers.shape[1]) for text in texts]
