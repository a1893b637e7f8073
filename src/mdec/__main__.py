"""``python -m mdec`` is the command ``mdec``."""

from mdec.cli import main

if __name__ == "__main__":
    main()
