"""What a computation makes: its largest tensor, and the eigenvalue problems that it solves."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class LargestTensor(TorchDispatchMode):
    """The entries of the largest tensor that is made, and the eigenvalue problems that are solved."""

    entries = decompositions = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, (tuple, list)) else [result]:
            self.entries = max(self.entries, value.numel() if isinstance(value, torch.Tensor) else 0)
        self.decompositions += "eigh" in str(function)
        return result
