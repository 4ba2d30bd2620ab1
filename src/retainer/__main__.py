"""The command `retainer`, also as `python -m retainer`."""

import gc


def main() -> None:
    """Load and run the command. Collecting garbage meanwhile would take a seventh of the time that loading takes."""
    gc.disable()
    from retainer.cli import main as run  # noqa: PLC0415

    gc.enable()
    run()


if __name__ == "__main__":
    main()
