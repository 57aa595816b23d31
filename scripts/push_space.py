"""Upload a demo that was built to a Space of the Hugging Face Hub. Without --push it only says what it would do.

python scripts/push_space.py vendi_embed --owner my-name            say what would be uploaded
python scripts/push_space.py vendi_embed --owner my-name --push     upload it: needs `hf auth login`
"""

import argparse
import sys
from pathlib import Path

from huggingface_hub import HfApi

# The commands import each other by way of the root.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.build_space import BUILD, COMMIT


def files_of(folder: Path) -> list[Path]:
    """List what a Space is made of."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def check(folder: Path) -> str:
    """Make sure that a folder is a whole build of one commit; returns the commit.

    Raises
    ------
    ValueError
        It says what to do.
    """
    if not (folder / COMMIT).is_file():
        raise ValueError(f"{folder} is no demo that was built. Run: python scripts/build_space.py {folder.name}")
    commit = (folder / COMMIT).read_text(encoding="utf-8").strip()
    if commit == "unknown" or commit.endswith("+changes"):
        raise ValueError(f"{folder} was built from files that are not committed ({commit}). Commit, and build again.")
    return commit


def push(folder: Path, repo: str, commit: str, private: bool) -> str:
    """Create the Space if it is not there, and make it hold just what the folder holds; returns its address."""
    api = HfApi()
    api.create_repo(repo, repo_type="space", space_sdk="gradio", private=private, exist_ok=True)
    done = api.upload_folder(
        repo_id=repo,
        repo_type="space",
        folder_path=folder,
        commit_message=f"Build of {commit}",
        ignore_patterns=["**/__pycache__/**"],
        delete_patterns="*",
    )
    return str(done)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="the demo, as built in build/<name>")
    parser.add_argument("--owner", required=True, help="the user or organization on the Hub")
    parser.add_argument("--push", action="store_true", help="upload; without it, nothing is sent")
    parser.add_argument("--private", action="store_true", help="make a new Space private")
    parser.add_argument("--build", type=Path, default=BUILD, help="the folder that it was built in; default build/")
    given = parser.parse_args()
    # `evaluate.load` finds the script of a Space by the name of the Space: they must be the same.
    folder, repo = given.build / given.name, f"{given.owner}/{given.name}"
    try:
        commit = check(folder) if given.push else (folder / COMMIT).read_text(encoding="utf-8").strip()
    except (ValueError, OSError) as error:
        parser.error(str(error))
    files = files_of(folder)
    for file in files:
        print(f"{file.stat().st_size:>12,}  {file.relative_to(folder)}")
    print(f"{len(files)} files of {folder}, built of {commit}, for the Space {repo}")
    if given.push:
        print(push(folder, repo, commit, given.private))
    else:
        print("Nothing was sent: pass --push to upload.")


if __name__ == "__main__":
    main()
