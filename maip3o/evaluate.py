"""python -m maip3o.evaluate checkpoint=<run directory | file | shipped name>: judge a policy. --help explains.

Nothing imports this module: in Python, `maip3o.evaluate` is the function of maip3o/api.py.
"""

from maip3o.evaluation.command import main

if __name__ == "__main__":
    main()
