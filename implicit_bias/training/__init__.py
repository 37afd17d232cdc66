"""Training of networks by gradient methods, alone or many at a time.

It knows no formulation: with a prediction it shares data and gating, nothing else.
"""
