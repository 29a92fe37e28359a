"""python -m maip3o.train +scenario=intersection [key=value ...]: train a policy. --help explains.

Nothing imports this module: in Python, `maip3o.train` is the function of maip3o/api.py.
"""

from maip3o.runners.command import main

if __name__ == "__main__":
    main()
