"""The output weights of a fitted model: `output_coef_` of networks, `coef_` of models on features you bring."""


def weights_of(model):
    return model.output_coef_ if hasattr(model, "output_coef_") else model.coef_
