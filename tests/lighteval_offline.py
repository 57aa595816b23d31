"""lighteval's own command without its own tasks, some of which ask the network as they are imported."""

from lighteval.__main__ import app
from lighteval.tasks.registry import Registry

Registry._load_from_files = staticmethod(lambda *_: {})
Registry._load_from_subdirs = staticmethod(lambda *_: {})

if __name__ == "__main__":
    app()
