"""The engine: one run from beginning to end, whatever its task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from paretoda.distributed.process_group import device_of_rank, process_group, run_on_all_ranks
from paretoda.run.build import build_step, describe_memory, pick_device
from paretoda.run.callbacks import Callbacks
from paretoda.run.finish import choose_validators, finish_run, write_results
from paretoda.run.reference import Reference
from paretoda.run.result import Run
from paretoda.run.settings import Settings
from paretoda.run.start import MakeSettings, RunRequest, start_run
from paretoda.run.task import Inputs, Task
from paretoda.run.threads import limit_threads
from paretoda.run.train import train
from paretoda.training.loop import After
from paretoda.training.step import Step


def execute(
    request: RunRequest,
    make_settings: MakeSettings,
    find_task: Callable[[str], Task[Any, Any]],
    after: Sequence[After],
    callbacks: Callbacks,
) -> Run:
    """Execute a run: start it, open its data, build its step, train it, choose its model and write its files.

    Args:
        request: What the user asks for.
        make_settings: Checks settings and completes them with defaults.
        find_task: Returns the task of a name.
        after: Hooks that are called after every step.
        callbacks: Receive sentences and progress.

    The engine is handed the functions that know the tasks, because it imports none of them.
    """
    with process_group() as processes, ExitStack() as stack:
        starting = start_run(request, make_settings, first=processes.rank == 0)
        started = run_on_all_ranks(processes, lambda: stack.enter_context(starting))
        settings, directory = started.settings, started.directory
        task = find_task(settings.task)
        run_on_all_ranks(processes, lambda: task.check_source(started.source))

        def open_and_build() -> tuple[Inputs, Settings, Step]:
            device = pick_device(device_of_rank(settings.device, processes))
            opened = task.open(settings, started.source, started.target, device, callbacks, resuming=started.resumes)
            if started.target_labels is not None:
                opened = task.add_target_labels(settings, opened, started.target_labels, callbacks)
            own = settings.for_data(opened.pair.kind)
            return opened, own, build_step(task, own, opened.pair, device, processes)

        # The first process computes the features of a frozen backbone; the others read them from the cache.
        inputs, settings, step = run_on_all_ranks(processes, open_and_build, first_alone=settings.frozen)
        run_on_all_ranks(processes, lambda: started.create_directory() if processes.rank == 0 else None)
        inputs = run_on_all_ranks(processes, lambda: task.prepare(settings, inputs, step, directory, callbacks))
        for note in describe_memory(settings, step.model):
            callbacks.notify(note)
        stack.enter_context(limit_threads(inputs.pair.kind, settings.threads))
        reference = Reference(task, settings, inputs, step, callbacks)
        stack.callback(reference.stop)
        trained = train(
            settings,
            inputs.pair,
            step,
            directory=directory,
            resume=started.resumes,
            after=after,
            say=callbacks.notify,
            validators=choose_validators(task, settings),
            on_candidate=callbacks.candidate,
        )
        path = None if directory is None else directory.path
        run = finish_run(task, settings, inputs, trained, reference, callbacks, path)
        if directory is not None and processes.rank == 0:
            write_results(task, directory, run, inputs, callbacks)
        return run
