from pathlib import Path


def run_growth(out: Path | None) -> None: ...
