"""Run divided.py with FSDP on CPUs, where accelerate does not divide models: python -m torch.distributed.run --nproc_per_node 2 divided_on_cpu.py divided.py fsdp2 OUT --cpu."""
import sys
import accelerate.state as S
from accelerate.utils import DistributedType
old = S.AcceleratorState.__init__
def init(self, *a, fsdp_plugin=None, **k):
    old(self, *a, fsdp_plugin=fsdp_plugin, **k)
    if fsdp_plugin is not None:
        self.distributed_type = DistributedType.FSDP
        self.fsdp_plugin = fsdp_plugin
S.AcceleratorState.__init__ = init
sys.argv = sys.argv[1:]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
