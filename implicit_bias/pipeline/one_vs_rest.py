"""x"""


def run_one_vs_rest(*a): ...
