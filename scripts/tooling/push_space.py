"""Upload a built demo to a Space of the Hugging Face Hub. Without --push it only lists the files.

python -m scripts.tooling.push_space vendi_embed --owner my-name            list the files
python -m scripts.tooling.push_space vendi_embed --owner my-name --push     upload them; needs `hf auth login`
"""

from pathlib import Path

from huggingface_hub import HfApi

from scripts.tooling.build_space import BUILD, COMMIT
from text_metrics.commands.shared.command import Parser, command


def files_of(folder: Path) -> list[Path]:
    """List the files of a Space."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def check(folder: Path, to_push: bool = True) -> str:
    """Check that a folder is a build, and of one commit if it is to be pushed; returns the commit."""
    if not (folder / COMMIT).is_file():
        raise ValueError(f"{folder} is not a built demo. Run: python -m scripts.tooling.build_space {folder.name}")
    commit = (folder / COMMIT).read_text(encoding="utf-8").strip()
    if to_push and (commit == "unknown" or commit.endswith("+changes")):
        raise ValueError(f"{folder} was built from files that are not committed ({commit}). Commit and build again.")
    return commit


def push(folder: Path, repo: str, commit: str, private: bool) -> str:
    """Create the Space if needed, mirror the folder to it, and return its address."""
    api = HfApi()
    api.create_repo(repo, repo_type="space", space_sdk="gradio", private=private, exist_ok=True)
    address = api.upload_folder(
        repo_id=repo,
        repo_type="space",
        folder_path=folder,
        commit_message=f"Build of {commit}",
        ignore_patterns=["**/__pycache__/**"],
        delete_patterns="*",
    )
    return str(address)


@command
def main() -> None:
    """Run the command."""
    parser = Parser(__doc__)
    parser.add_argument("name", help="the demo, built in build/<name>")
    parser.add_argument("--owner", required=True, help="the user or organization on the Hub")
    parser.add_argument("--push", action="store_true", help="upload; without it nothing is sent")
    parser.add_argument("--private", action="store_true", help="create the Space as private")
    parser.add_argument("--build", type=Path, default=BUILD, help="the folder with the build; default build/")
    given = parser.parse_args()
    # `evaluate.load` finds the script of a Space by the name of the Space, so both must be equal.
    folder, repo = given.build / given.name, f"{given.owner}/{given.name}"
    commit = check(folder, given.push)
    files = files_of(folder)
    for file in files:
        print(f"{file.stat().st_size:>12,}  {file.relative_to(folder)}")
    print(f"{len(files)} files of {folder}, built from {commit}, for the Space {repo}")
    if given.push:
        print(push(folder, repo, commit, given.private))
    else:
        print("Nothing was sent: pass --push to upload.")


if __name__ == "__main__":
    raise SystemExit(main())
