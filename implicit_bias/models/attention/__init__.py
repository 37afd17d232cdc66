"""One layer of softmax attention: the max-margin programs of the tokens that it selects."""
