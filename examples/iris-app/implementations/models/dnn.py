from sklearn.neural_network import MLPClassifier


def create_estimator(run_config, model_config):
    return MLPClassifier(
        hidden_layer_sizes=model_config["hparams"]["hidden_units"],
        max_iter=model_config["training"]["num_steps"],
        solver="lbfgs",
        random_state=run_config.tf_random_seed,
    )
