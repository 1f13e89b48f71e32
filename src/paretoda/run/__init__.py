"""The main job: from a labelled source and an unlabelled target to a model that works on the target."""
