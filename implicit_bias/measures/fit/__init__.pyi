"""Names of `implicit_bias.measures.fit`, with the modules that they are loaded from."""

from .bordered import BorderedFactor as BorderedFactor
from .bordered import conjugate_gradients as conjugate_gradients
from .exchange import exchange_fit as exchange_fit
from .gradients import gradient_gram as gradient_gram
from .gram_products import GramProducts as GramProducts
