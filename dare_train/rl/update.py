"""One update of a policy: from completions with rewards to a gradient, at the memory of a few rows.

updater = Updater(algorithm.resolve(config), config, scorer=Scorer(shift=config.shift), ...)
batches = [updater.prepare(trajectories, generator=seeded(n)) for n in range(algorithm.updates_per_rollout)]
old = [updater.values(network, batch) for batch in batches]       # not needed when there is only one update
ref = [updater.values(reference, batch) for batch in batches]     # only when algorithm.kl.active
for batch, before, anchor in zip(batches, old, ref):
    for part in updater.minibatches(batch):                       # algorithm.minibatches optimizer steps
        metrics = updater.backward(network, part, old=before, ref=anchor)
        optimizer.step()
"""
