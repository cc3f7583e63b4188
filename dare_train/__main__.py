"""``python -m dare_train``: the same as ``dare-train``, for launchers that start modules."""

from dare_train.cli import main

if __name__ == "__main__":
    main()
