"""NoveltyBench's classifier of pairs and its partition, written out one pair at a time (arXiv 2504.05228)."""

import torch


def short_overlap(left, right):
    """Compare two texts of at most five words by the words that they share; None if one is longer."""
    words = [text.strip().lower().split() for text in (left, right)]
    n = max(map(len, words))
    if n > 5:
        return None
    return len(set(words[0]).intersection(words[1])) >= n / 2


def probability(tokenizer, model, left, right, n_tokens=128):
    """Probability of the second class for the first tokens of each text, in this order."""
    pieces = [tokenizer.encode(text, add_special_tokens=False)[:n_tokens] for text in (left, right)]
    segments = [[tokenizer.cls_token_id, *pieces[0], tokenizer.sep_token_id], [*pieces[1], tokenizer.sep_token_id]]
    ids = torch.tensor([segments[0] + segments[1]])
    types = torch.tensor([[0] * len(segments[0]) + [1] * len(segments[1])])
    with torch.no_grad():
        return float(torch.softmax(model(input_ids=ids, token_type_ids=types).logits[0], dim=-1)[1])


def same_by_rule(tokenizer, model, left, right, short_texts):
    """Whether the rule holds two different texts for the same; `short_texts`: with the overlap of short ones."""
    overlap = short_overlap(left, right) if short_texts else None
    return probability(tokenizer, model, left, right) > 0.102 if overlap is None else overlap
