"""`python -m paretoda` is the command line."""

from paretoda.cli import main

if __name__ == "__main__":  # spawned workers import this file, too
    main()
