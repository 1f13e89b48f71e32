"""What the engine of a run asks of a task: open data, build a step, make predictors, write results.

Everything that differs between tasks stands behind `Task`. The engine (`paretoda.run`) is handed a task and imports
none; `paretoda.tasks` has one folder for each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import torch

from paretoda.data.doctor.findings import Finding
from paretoda.data.pair import Pair
from paretoda.errors import DataError, RunError, SettingsError
from paretoda.evaluation.joint_validators import JOINT_VALIDATORS
from paretoda.evaluation.validators import Validator
from paretoda.report.card import CardFacts
from paretoda.report.facts import NO_PICTURES, Pictures, RunFacts
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.export.program import Program
from paretoda.run.settings import Settings
from paretoda.training.step import Step
from paretoda.types import Model, Objective, Progress, Snapshot

if TYPE_CHECKING:
    from paretoda.run.result import Run


NOT_ONE_MODEL = "the mean of several runs is not a model of its own: save each of them"
NO_TARGET = "There is no target: the model was trained on the source alone, and nothing was adapted."
Names = Mapping[str, str]
"""Name -> one line about it."""


class Predictor(Protocol):
    """A trained model that can be used alone: transforms, networks and class names."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; for a task without classes, of what is predicted."""
        ...

    def predict(self, inputs: Any, *, refined: bool = False) -> list[Any]:
        """Predict one label, one label map or one value for each sample."""
        ...

    def predict_proba(self, inputs: Any, *, refined: bool = False) -> Any:
        """Return the class probabilities of each sample; a RunError where the task has no classes."""
        ...

    def save(self, weights: Path, description: Path) -> None:
        """Write the two files of the model."""
        ...


class Inputs(Protocol):
    """The data of a run, opened."""

    @property
    def pair(self) -> Pair:
        """Source and target as the step reads them."""
        ...

    @property
    def has_target(self) -> bool:
        """Whether a target was given; without one the source stands in its place."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the data for the user."""
        ...


AnyInputs = TypeVar("AnyInputs", bound=Inputs)
AnyPredictor = TypeVar("AnyPredictor", bound=Predictor)


@dataclass(frozen=True)
class Tables:
    """The names that the settings of a task take.

    Args:
        methods: Alignments by name.
        target_losses: Losses on the target by name.
        guides: Guides by name.
        schemes: Schemes and strategies that the task can be trained with, by name.
        validators: Label-free validators by name.
        backbones: Networks by name, with one line about each.
        rules: Rules of selection besides the validators.
    """

    methods: Mapping[str, Callable[..., Objective] | None]
    target_losses: Mapping[str, Callable[..., Objective] | None]
    guides: Mapping[str, Callable[..., Objective]]
    schemes: Mapping[str, Callable[..., Any]]
    validators: Mapping[str, Callable[[], Validator]]
    backbones: Names
    rules: Sequence[str] = ("ensemble", "last", *JOINT_VALIDATORS)


@dataclass(frozen=True)
class PredictOptions:
    """How a user wants predictions.

    Args:
        refined: Use the refined predictions of the class-wise discriminators.
        crops: Crops of an image whose predictions are averaged; None: as many as the run had.
        preference: Weight of each loss, for a run of the scheme "hypernetwork"; None: as it was trained.
        skip_bad: Leave out images that cannot be read.
        calibrated: Divide logits by the run's temperature.
        abstain_below: Give no answer where the confidence is lower; None: always give one.
        table: Label table of the evaluated files; None: the one of their layout.
        classes: Classes that a mean over classes is restricted to; None: all.
        runs: How many runs the predictor averages.
    """

    refined: bool = False
    crops: int | None = None
    preference: tuple[float, ...] | None = None
    skip_bad: bool = False
    calibrated: bool = False
    abstain_below: float | None = None
    table: str | None = None
    classes: tuple[str, ...] | None = None
    runs: int = 1


@dataclass(frozen=True)
class Outcome:
    """What a command prints after it has predicted or measured.

    Args:
        values: Returns the values of the `--json` line.
        lines: Lines of text, in order.
        columns: Headings of a table below them -> "left" or "right".
        rows: Rows of the table.
        after: Lines below the table.
        raw: Text that goes to standard output as it is, such as predictions without a file.
    """

    values: Callable[[], dict[str, Any]]
    lines: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[Sequence[str]] = ()
    after: Sequence[str] = ()
    raw: str | None = None


@dataclass(frozen=True, eq=False)
class BenchData:
    """The data of one task of a benchmark suite.

    Args:
        source: What `adapt` reads as the source.
        target: What `adapt` reads as the target, without labels.
        test: Labelled data that finished models are measured on; its labels are for the table only.
        target_labels: What `adapt` reads as the labelled samples of the target; None without any.
    """

    source: Any
    target: Any
    test: Any
    target_labels: Any = None


@dataclass(frozen=True)
class Usage:
    """What a user can do with a finished run.

    Args:
        predictions: The file or folder of the target's predictions.
        out: What `paretoda predict` needs behind its input, such as " --out FOLDER".
        losses: Names of the losses that `--preference` weighs; empty where the run takes none.
    """

    predictions: Path
    out: str = ""
    losses: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Conclusion(Generic[AnyPredictor]):
    """What the end of a run says about the chosen model.

    Args:
        predictor: The predictor, complete.
        facts: Values for results.json.
        sentences: Sentences for the user.
    """

    predictor: AnyPredictor
    facts: Mapping[str, Any] = field(default_factory=dict)
    sentences: Sequence[str] = ()


class Task(ABC, Generic[AnyInputs, AnyPredictor]):
    """A kind of prediction that a run can be trained for, such as classification.

    A task is an object whose state never changes; what it returns, the engine hands back to it. The abstract methods
    are enough to train and to predict. The others have defaults, which say that the task does not offer what was asked
    for.
    """

    name: str
    """The value of the setting `task`."""
    smallest_batch: int = 2
    """Samples of a domain that a batch or micro-batch needs at least."""
    classes_title: str = "Predicted classes"
    """Heading of the table of predicted classes on a report."""
    kept_settings: tuple[str, ...] | None = None
    """Settings that a run with `from_run` takes from the run that it begins with; None: the task has no such runs."""
    takes_several_sources: bool = False
    """Whether `open` and `examine` also take a list of sources."""
    own_parts: tuple[str, ...] = ()
    """Parts besides alignment, target losses, guide and scheme that take options, such as "translation"."""

    @property
    @abstractmethod
    def tables(self) -> Tables:
        """The names that settings take."""

    def defaults(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the defaults that differ from those of `Settings`, given what the user has set."""
        return {}

    def with_shared_folder(self, folder: Path) -> Task[AnyInputs, AnyPredictor]:
        """Return the task whose runs keep in this folder what several of them would compute alike.

        The runs of a benchmark have such a folder. By default they share nothing.
        """
        return self

    def check(self, settings: Settings) -> None:
        """Raise ValueError for settings that contradict each other in this task."""

    @abstractmethod
    def open(
        self,
        settings: Settings,
        source: Any,
        target: Any,
        device: torch.device,
        callbacks: Callbacks = NO_CALLBACKS,
        *,
        resuming: bool = False,
    ) -> AnyInputs:
        """Open and check the data.

        Args:
            settings: Settings of the run.
            source: Labelled data, as the user gave them; a list of several sources where the task takes them.
            target: Unlabelled data; None: the source stands in their place.
            device: Device of the networks.
            callbacks: Receive notes and progress.
            resuming: Whether the run continues from a checkpoint.
        """

    def add_target_labels(
        self, settings: Settings, inputs: AnyInputs, labels: Any, callbacks: Callbacks = NO_CALLBACKS
    ) -> AnyInputs:
        """Return the inputs with the target samples whose labels the user has given.

        Args:
            settings: Settings of the run.
            inputs: What `open` returned.
            labels: Labelled data of the target, as the user gave them.
            callbacks: Receive notes and progress.
        """
        raise SettingsError(f"--target-labels is not for {self.name}; leave it out")

    @abstractmethod
    def build(self, settings: Settings, pair: Any, device: torch.device) -> Step:
        """Build networks, objectives, scheme and optimiser: the step before training.

        Args:
            settings: Settings of the run.
            pair: The `pair` of this task's inputs.
            device: Device of the networks.
        """

    def join(self, models: Sequence[Model]) -> Model:
        """Return one model that predicts the mean of these, made of their own networks."""
        raise SettingsError(f"--members is not for {self.name}; train runs with several seeds and give them to --with")

    def check_processes(self, settings: Settings) -> None:
        """Raise SettingsError where several processes cannot train such a run."""

    def prepare(
        self,
        settings: Settings,
        inputs: AnyInputs,
        step: Step,
        directory: RunDirectory | None,
        callbacks: Callbacks,
    ) -> AnyInputs:
        """Do what comes before the first step, such as training a translation; return the inputs to train on."""
        return inputs

    def check_source(self, source: Any) -> None:
        """Raise SettingsError for several sources, where the task takes one only."""
        if isinstance(source, list) and not self.takes_several_sources:
            raise SettingsError(f"several sources are not for {self.name}; give one --source")

    @abstractmethod
    def predictor(self, step: Step, inputs: AnyInputs) -> AnyPredictor:
        """Copy the step's present model into a predictor for new data of the target."""

    def for_sources(self, predictor: AnyPredictor, inputs: AnyInputs) -> tuple[AnyPredictor, ...]:
        """Return the same networks as a predictor for new data of the source, or of each of several."""
        return (predictor,)

    def calibrate(self, predictor: AnyPredictor, snapshot: Snapshot) -> AnyPredictor:
        """Return the predictor with calibrated confidences, where the task has them."""
        return predictor

    def conclude(
        self, settings: Settings, step: Step, predictor: AnyPredictor, snapshot: Snapshot
    ) -> Conclusion[AnyPredictor]:
        """Return the predictor with what the whole target says about it, and what the user should know.

        Args:
            settings: Settings of the run.
            step: The step after training.
            predictor: Predictor of the snapshot's model.
            snapshot: What the model makes of the whole sets.
        """
        return Conclusion(predictor)

    def doubt(self, snapshot: Snapshot, classes: tuple[str, ...]) -> Sequence[str]:
        """Return what speaks against equal classes in source and target, by a model of the source alone.

        Args:
            snapshot: What that model makes of the whole sets.
            classes: Names of the classes.
        """
        return ()

    def describe_objectives(self, objectives: Iterable[Objective]) -> Sequence[str]:
        """Return what the user should know about the trained objectives."""
        return ()

    @abstractmethod
    def write_predictions(self, directory: RunDirectory, run: Run, inputs: AnyInputs, callbacks: Callbacks) -> None:
        """Write the target's predictions into the run's directory."""

    @abstractmethod
    def load(self, directory: RunDirectory, device: torch.device) -> AnyPredictor:
        """Load the model of a finished run; nothing in its files is executed."""

    def average(self, predictors: Sequence[AnyPredictor]) -> AnyPredictor:
        """Return one predictor whose probabilities are the mean of theirs."""
        if len(predictors) > 1:
            raise RunError(f"runs of {self.name} have no mean; leave out --with")
        return predictors[0]

    def pictures(self, predictor: AnyPredictor, inputs: AnyInputs | None, facts: RunFacts) -> Pictures:
        """Return the pictures of the report; none where the data are no longer those of the run."""
        return NO_PICTURES

    def oracle_pictures(
        self,
        pictures: Pictures,
        predictor: AnyPredictor,
        labelled: str,
        callbacks: Callbacks,
    ) -> Pictures:
        """Add pictures of labelled data to those of a report."""
        raise RunError(f"reports of {self.name} have no pictures of labelled data; leave out --labelled")

    def card(self, predictor: AnyPredictor) -> CardFacts:
        """Return the facts of the model card."""
        return CardFacts(predictor.classes, self.name)

    def usage(self, directory: RunDirectory, predictor: AnyPredictor) -> Usage:
        """Return what a user can do next with a finished run."""
        return Usage(directory.predictions)

    def apply_options(self, predictor: AnyPredictor, options: PredictOptions) -> AnyPredictor:
        """Return the predictor with the user's options.

        Raises:
            RunError: An option makes no sense for this task.
        """
        if options != PredictOptions(skip_bad=options.skip_bad, runs=options.runs):
            raise RunError(f"predictions of {self.name} have no such options; give the run and the data alone")
        return predictor

    def predict_data(
        self,
        predictor: AnyPredictor,
        data: str,
        out: Path | None,
        options: PredictOptions,
        callbacks: Callbacks,
    ) -> Outcome:
        """Predict new data and write the predictions to `out`: what `paretoda predict` does."""
        raise RunError(f"runs of {self.name} predict in Python only: paretoda.tasks.loading.load_run")

    def evaluate_data(
        self,
        predictor: AnyPredictor,
        data: str,
        options: PredictOptions,
        callbacks: Callbacks,
    ) -> Outcome:
        """Compare predictions of labelled data with the labels: what `paretoda evaluate` does."""
        raise RunError(f"runs of {self.name} cannot be evaluated from the command line")

    def make_program(self, predictor: AnyPredictor, *, transforms: bool, refined: bool) -> Program:
        """Return the module that `paretoda export` writes, with what it is compared with."""
        raise RunError(f"runs of {self.name} cannot be exported")

    def examine(
        self,
        source: Any,
        target: Any,
        *,
        table: str | None,
        skip_bad: bool,
        progress: Progress | None,
    ) -> Sequence[Finding]:
        """Return everything that is wrong or strange about two domains: what `paretoda doctor` does."""
        raise DataError(f"the doctor does not support data of {self.name}")

    def examine_target_labels(
        self, labels: Any, source: Any, target: Any, *, skip_bad: bool, progress: Progress | None
    ) -> Sequence[Finding]:
        """Return everything that is wrong or strange about the labelled samples of the target."""
        raise DataError(f"--target-labels is not for {self.name}; leave it out")

    def examine_given_run(
        self, place: str, target: Any, *, skip_bad: bool, progress: Progress | None
    ) -> Sequence[Finding]:
        """Return everything that is wrong or strange about a finished run and the target it is to be adapted to."""
        raise DataError(f"--from is not for {self.name}; leave it out")

    def open_benchmark(self, source: Any, target: Any, test: Any, *, skip_bad: bool) -> BenchData:
        """Open the data of a benchmark's task.

        Args:
            source: Labelled source, as a user would give it; None: the labelled target, for an oracle.
            target: Labelled target.
            test: Labelled data to measure on; None: the target.
            skip_bad: Leave out files that cannot be read.
        """
        raise DataError(f"there are no benchmarks of {self.name}")

    def measure(self, run: Run, data: BenchData) -> dict[str, Any]:
        """Measure the chosen and the last model of a run: measure -> "chosen" or "last" -> value."""
        raise DataError(f"there are no benchmarks of {self.name}")

    def measure_candidate(self, snapshot: Snapshot, pair: Pair, data: BenchData) -> dict[str, float]:
        """Measure a candidate by the target's labels, for the store of a benchmark; by default nothing is measured.

        Args:
            snapshot: What the candidate makes of the whole sets.
            pair: Data of the run.
            data: Data of the benchmark's task.
        """
        return {}
