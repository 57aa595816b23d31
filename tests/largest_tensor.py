"""What a computation makes: its largest tensor, and the eigenvalue problems that it solves."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class LargestTensor(TorchDispatchMode):
    """The entries of the largest tensor that is made, and the eigenvalue problems that are solved."""

    entries = decompositions = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for own in found if isinstance(found, (tuple, list)) else [found]:
            self.entries = max(self.entries, own.numel() if isinstance(own, torch.Tensor) else 0)
        self.decompositions += "eigh" in str(function)
        return found
