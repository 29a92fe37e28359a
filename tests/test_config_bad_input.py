"""Every wrong input ends with one line, exit code 2, and nothing written."""

import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from maip3o.config.overrides import add_plus, known_keys
from maip3o.config.schema import Config, ScenarioConfig
from maip3o.config.validation import RULES
from maip3o.errors import UserError
from maip3o.runners.command import check
from maip3o.runners.compose import compose
from maip3o.runners.sweep import command_lines

SCENARIO = "+scenario=intersection"
CONF = Path(__file__).parent / "conf"
COMMAND = re.compile(r"\s+python -m maip3o\.train [^<[]*$")

BAD = [
    # what is given besides the scenario, and what the message must contain
    ("algo.lrr=0.1", "did you mean algo.lr?"),
    ("lr=0.1", "did you mean algo.lr?"),
    ("total_episode=10", "did you mean total_episodes?"),
    ("numworkers=2", "did you mean num_workers?"),
    ("+foo=1", "unknown key foo"),
    ("++algo.foo=1", "unknown key algo.foo"),
    ("scenario.agents=3", "unknown key scenario.agents"),
    ("evaluation.episode=3", "did you mean evaluation.episodes?"),
    ("algo=mapo", "did you mean mappo?"),
    ("model=transformer", "known are gru"),
    ("runner=slurm", "known are local, ray"),
    ("seed", "not of the form key=value"),
    ("seed=", "seed="),
    ("seed=[1", "not of the form key=value"),
    ("seed=one", "seed=one"),
    ("seed=1.5", "seed=1.5"),
    ("seed=-1", "seed=-1: must be in [0"),
    ("seed=0,1", "seed=0,1"),
    ("total_episodes=0", "total_episodes=0: must be 1 or above"),
    ("total_episodes=31", "multiple of episodes_per_iteration=2, for instance 32"),
    ("episodes_per_iteration=0", "episodes_per_iteration=0"),
    ("num_workers=0", "num_workers=0: must be a number from 1 to 1024, or auto"),
    ("num_workers=3", "an iteration has 2 episodes (episodes_per_iteration=2); set num_workers to 2 or less"),
    ("num_workers=100000", "num_workers=100000: must be a number from 1 to 1024, or auto"),
    ("num_workers=many", "num_workers=many"),
    ("torch_threads=-2", "torch_threads=-2"),
    ("device=tpu", "device=tpu: must be auto, cpu, cuda"),
    ("device=cuda:99", "device=cuda:99: this machine has"),
    ("checkpoint_every_episodes=-1", "checkpoint_every_episodes=-1"),
    ("evaluation.episodes=0", "evaluation.episodes=0"),
    ("evaluation.episodes=2000000", "held-out"),
    ("evaluation.deterministic=maybe", "evaluation.deterministic=maybe"),
    ("scenario.num_agents=0", "scenario.num_agents=0"),
    ("scenario.horizon=0", "scenario.horizon=0"),
    ("scenario.horizon=10", "algo.chunk_length=16: no episode is longer than scenario.horizon=10"),
    ("scenario.end_rule=third", "must be one of half, first, all"),
    ("scenario.backend=slow", "must be one of fast, stock"),
    ("scenario.name=null", "scenario.name"),
    ("scenario.name=", "scenario.name=: must not be empty"),
    ("algo.name=''", "algo.name=: must not be empty"),
    ("scenario.metadrive.speed_reward=0.2", "a plus sign adds it: +scenario.metadrive.speed_reward=0.2"),
    ("scenario.map=moon", "must be one of intersection"),
    ("scenario.lidar=none", "must be one of exact, analytic"),
    ("scenario.observation=far", "must be one of linear, near"),
    ("algo.gamma=1", "algo.gamma=1.0: must be in [0, 1)"),
    ("algo.gamma=nan", "algo.gamma=nan"),
    ("algo.lr=inf", "algo.lr=inf: must be above 0"),
    ("algo.lr=-1e-3", "algo.lr=-0.001: must be above 0"),
    ("algo.lr=fast", "algo.lr=fast"),
    ("algo.clip=1.5", "algo.clip=1.5"),
    ("algo.epochs=2.5", "algo.epochs=2.5"),
    ("algo.minibatches=1000", "more than the 640 chunks of an iteration"),
    ("+constraints.speeding={cost: sped, limit: 3}", "constraints.speeding.cost=sped: known are termination, crash"),
    ("+constraints.crash={threshold: 3, limit: 0.1}", "constraints.crash.threshold=3: this cost takes no parameters"),
    ("algo.method=ip4o", "algo.method=ip4o: no such algorithm; did you mean ipo? known are ppo, "),
    ("+algo.settings.multiplier_lr=1", "algo.settings.multiplier_lr=1: ip3o has no such setting"),
    ("+constraints.termination.eta=-1", "constraints.termination.eta=-1.0: must be 0 or above"),
    ("+constraints.termination.alpha=0", "constraints.termination.alpha=0.0: must be above 0"),
    ("constraints.termination.limit=0", "algo.penalty.alpha=None: a limit of 0 gives no scale; set algo.penalty.alpha"),
    ("algo.penalty.eta=inf", "algo.penalty.eta=inf: must be 0 or above, and finite"),
    ("algo.penalty.growth=odd", "algo.penalty.growth=odd: must be one of fixed, odds"),
    (
        "algo.penalty.eta_start=0.3",
        "algo.penalty.eta_start=0.3: algo.penalty.growth=odds decides the weight; "
        "set algo.penalty.growth=fixed for one that grows with the episodes",
    ),
    ("algo.penalty.eta_start=-1", "algo.penalty.eta_start=-1.0: must be 0 or above and finite, or null"),
    ("algo.penalty.eta_start=inf", "algo.penalty.eta_start=inf: must be 0 or above and finite, or null"),
    ("algo.penalty.alpha=0", "algo.penalty.alpha=0.0: must be above 0"),
    ("algo.penalty.floor_h=0.2", "must be in (0, alpha=0.1)"),
    ("algo.penalty=celu", "algo.penalty=celu"),
    ("algo.kl_min=0.5", "must be below algo.kl_max"),
    ("algo.constraint_unit=per_car", "must be one of per_agent, per_team"),
    ("algo.lr_schedule=cosine", "must be one of constant, linear"),
    ("start_spread=0", "start_spread=0: must be 1 step or above, or null"),
    ("start_spread=500", "start_spread=500: must be below scenario.horizon=500"),
    ("start_spread=much", "start_spread=much"),
    ("init=nowhere", "init=nowhere: checkpoint=nowhere: no run directory, file or shipped policy"),
    ("model.hidden_sizes=[]", "must list at least one size"),
    ("model.hidden_sizes=[64,0]", "each 1 or above"),
    ("model.hidden_sizes=64", "model.hidden_sizes=64"),
    ("model.activation=gelu", "must be one of tanh, relu"),
    ("model.recurrent=perhaps", "model.recurrent=perhaps"),
    ("constraints.termination.limit=1.5", "a share of lives must be below 1"),
    ("constraints.termination.limit=-0.1", "must be 0 or above"),
    ("constraints.termination.limit=inf", "must be 0 or above, and finite"),
    ("constraints.terminaton.limit=0.2", "a plus sign adds it"),
    ("constraints.crash.limit=0.2", "a plus sign adds it: +constraints.crash.limit=0.2"),
    ("constraints.termination.limits=0.1", "constraints.termination.limits"),
    ("+constraints.crash.limits=0.1", "limits"),
    ("+constraints.crash=0.1", "constraints.crash"),
    ("+constraints.rudeness.limit=0.1", "no such cost in scenario intersection"),
    ("~constraints.termination", "needs at least one"),
    ("constraints={}", "must be set key by key: constraints.<key>=<value>"),
    ("algo={lr:0.1}", "must be set key by key: algo.<key>=<value>"),
    ("runner.episode_timeout=0", "runner.episode_timeout=0.0"),
    ("runner.max_attempts=0", "runner.max_attempts=0"),
    ("runner.address=auto", "only runner=ray has an address"),
    ("logger.quiet=loud", "logger.quiet=loud"),
    ("logger.wandb_project=x", "wandb"),
    ("hydra.nonsense=1", "nonsense"),
]


def test_a_floor_above_the_limit_is_refused() -> None:
    with pytest.raises(UserError, match=r"algo\.penalty\.floor_h=1\.5: must be in \(0, 1\)"):
        compose([SCENARIO, "algo.penalty.alpha=2", "algo.penalty.floor_h=1.5"])


def test_networks_of_another_shape_are_refused() -> None:
    with pytest.raises(UserError, match=r"its model\.memory_size is 64, that of this run 8"):
        compose([SCENARIO, "init=maip3o-intersection", "model.memory_size=8"])


def test_networks_for_other_observations_are_refused() -> None:
    with pytest.raises(UserError, match=r"its networks read 91 numbers, an observation of scenario toy has 3"):
        check(["+scenario=toy", "init=maip3o-intersection"], str(CONF), multirun=False)
    check([SCENARIO, "init=maip3o-intersection"], None, multirun=False)


@pytest.mark.simulator
@pytest.mark.parametrize(("scenario", "size"), [("bottleneck", 96), ("tollgate", 156)])
def test_networks_for_another_map_are_refused(scenario: str, size: int) -> None:
    with pytest.raises(UserError, match=f"an observation of scenario {scenario} has {size}"):
        check([f"+scenario={scenario}", "init=maip3o-intersection"], None, multirun=False)


@pytest.mark.simulator
@pytest.mark.parametrize(
    "arguments",
    [
        ["+scenario=roundabout", "scenario.backend=fast"],
        [SCENARIO, "+scenario.metadrive.traffic_density=0.1"],
    ],
)
def test_what_the_fast_simulator_cannot_do_is_refused_before_a_run_begins(arguments: list[str]) -> None:
    with pytest.raises(UserError, match="use backend=stock"):
        check(arguments, None, multirun=False)


def test_minibatches_are_bounded_by_what_an_iteration_can_hold() -> None:
    compose([SCENARIO, "algo.minibatches=640"])
    compose([SCENARIO, "algo.minibatches=1000", "model=mlp"])  # a chunk is one step there
    compose(["+scenario=intersection_respawn", "algo.minibatches=10000"])  # who knows how many newcomers there will be


@pytest.mark.parametrize(("override", "expected"), BAD, ids=[override for override, _ in BAD])
def test_bad_override_is_refused_in_one_line(override: str, expected: str) -> None:
    with pytest.raises(UserError) as refused:
        compose([SCENARIO, override])
    message = str(refused.value)
    assert expected in message
    assert "\n" not in message
    assert len(message) < 400


def test_without_a_scenario_the_message_lists_them() -> None:
    with pytest.raises(UserError, match=r"\+scenario=<name>, one of .*intersection.*parking_lot"):
        compose([])


def test_unknown_scenario_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean intersection"):
        compose(["+scenario=intersecton"])


def test_wrong_config_dir() -> None:
    with pytest.raises(UserError, match="no such directory"):
        compose([SCENARIO], config_dir="nowhere")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "name: x\nmap: intersection\nnum_agent: 4",
            "scenario/own.yaml: scenario.num_agent: unknown key; did you",
        ),
        ("name: x\nmap: intersection\nnum_agents: four", "scenario/own.yaml: scenario.num_agents: Value 'four'"),
        ("name: x\nmap: intersection\nnum_agents: 0", "scenario.num_agents=0: must be 1 or above"),
        ("map: intersection", "scenario/own.yaml: it has no name; add name: own"),
        ("- 1\n- 2", "scenario/own.yaml: Merge error: list"),
        ("name: [x\nmap: y", "scenario/own.yaml"),
        ("name: \xff", "not UTF-8"),
    ],
)
def test_mistakes_in_a_file_of_ones_own_are_told_in_one_line(text: str, expected: str, tmp_path: Path) -> None:
    for group in ("scenario", "experiment"):
        (tmp_path / group).mkdir()
        (tmp_path / group / "own.yaml").write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError) as refused:
        check(["+scenario=own"], str(tmp_path), multirun=False)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not str(refused.value).endswith(":")
    if "[" in text or "\xff" in text:
        with pytest.raises(UserError, match=r"not YAML|not UTF-8"):
            check(["+experiment=own"], str(tmp_path), multirun=True)


def test_a_sweep_is_checked_job_by_job() -> None:
    check([SCENARIO, "seed=0,1", "algo=mappo,maip3o"], None, multirun=True)
    with pytest.raises(UserError, match=r"algo\.clip=2"):
        check([SCENARIO, "algo.clip=0.1,2"], None, multirun=True)
    with pytest.raises(UserError, match="no such algo"):
        check([SCENARIO, "algo=mappo,nothing"], None, multirun=True)


def test_every_number_and_name_of_the_schema_has_a_rule() -> None:
    """A key that is added to the schema must say what is right for it."""
    free = {"resume", "runner.address", "logger.wandb_project"}
    elsewhere = {"algo.method", "algo.penalty.floor_h", "constraints"}  # rules between several keys
    elsewhere |= {f"scenario.{item.name}" for item in fields(ScenarioConfig)}  # envs.scenarios.check_scenario
    config = compose([SCENARIO])[0]
    for key in known_keys():
        value: object = config
        for part in key.split("."):
            value = getattr(value, part, None)
        if isinstance(value, (int, float, str, list)) and not isinstance(value, bool):
            assert key in RULES or key in free | elsewhere, f"{key} has no rule in maip3o/config/validation.py"


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("scenario.num_agents=90", "holds at most"),
        ("+scenario.metadrive.trafic_mode=1", "did you mean 'traffic_mode'"),
        ("+scenario.metadrive.horizon=10", "set scenario.horizon instead"),
        ("+scenario.metadrive.start_seed=10", "this project sets it"),
    ],
)
def test_what_only_the_simulator_knows_is_asked_before_the_start(override: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        check([SCENARIO, override], None, multirun=False)


@pytest.mark.parametrize("overrides", [["algo.lr=x"], ["+scenario=nowhere"], ["-m", "algo.clip=0.1,2"], ["--nonsense"]])
def test_command_exits_with_2_and_writes_nothing(tmp_path: Path, overrides: list[str]) -> None:
    scenario = [] if any("scenario" in text for text in overrides) else [SCENARIO]
    command = [sys.executable, "-m", "maip3o.train", *scenario, *overrides]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_help_names_every_key_group_and_scenario() -> None:
    from maip3o.config.usage import usage

    text = usage()
    for name in (
        "+scenario=",
        "intersection",
        "parking_lot",
        "mappo",
        "episodes_per_iteration",
        "resume",
        "num_workers",
    ):
        assert name in text


DOCS = Path(__file__).parents[1] / "docs"


def test_every_command_of_help_and_docs_can_be_run() -> None:
    from maip3o.config.usage import usage

    pages = [path for path in DOCS.glob("*.md") if path.name != "add-a-world.md"]  # whose files test_newcomer.py writes
    text = "\n".join([usage(), *(path.read_text(encoding="utf-8") for path in pages)])
    commands = [re.split(r"\s{2,}", line.strip())[0] for line in text.splitlines() if COMMAND.match(line)]
    assert len(commands) > 10
    for command in commands:
        if command.endswith("\\"):  # it goes on in the next line
            continue
        words = shlex.split(command)[3:]
        own = any(re.search(r"=<|\bmy_|^resume=|^init=runs|^--config-dir$", word) for word in words)  # of the reader's
        if not own:
            overrides = add_plus([word for word in words if word != "-m"])
            first = command_lines(overrides, None, multirun="-m" in words)[0]
            compose([*first, "init=null"] if "+experiment=patient_crowd" in words else first)  # goes on from another


def test_config_is_typed() -> None:
    config, directory = compose([SCENARIO, "algo=mappo", "seed=3", "algo.lr=1e-3"])
    assert isinstance(config, Config)
    assert (config.algo.name, config.algo.lr, config.seed) == ("mappo", 1e-3, 3)
    assert directory == Path("runs/intersection/mappo/algo.lr=0.001/seed3")  # as a sweep would write it


def test_settings_that_make_no_other_experiment_do_not_change_the_directory() -> None:
    plain = compose([SCENARIO])[1]
    assert compose([SCENARIO, "num_workers=1", "total_episodes=2000", "runner=ray", "logger.quiet=true"])[1] == plain
    assert compose([SCENARIO, "evaluation.episodes=3", "runner.max_attempts=2", "device=cpu"])[1] == plain
    assert compose([SCENARIO, "algo.clip=0.1"])[1] != plain


def test_a_run_of_another_length_has_another_directory() -> None:
    assert compose([SCENARIO, "total_episodes=40"])[1] == Path("runs/intersection/maip3o/total_episodes=40/seed0")
    named = compose([SCENARIO, "algo.clip=0.1", "total_episodes=40"])[1]
    assert named == Path("runs/intersection/maip3o/algo.clip=0.1,total_episodes=40/seed0")
    from_a_file = compose([SCENARIO, "+experiment=smoke"])[1]  # the experiment's file sets the length
    assert from_a_file == Path("runs/intersection/maip3o/total_episodes=8/seed0")


def test_configs_of_ones_own(tmp_path: Path) -> None:
    config, _ = compose(["+scenario=toy"], config_dir=str(CONF))
    assert config.scenario.world == "toy"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("+constraints.crash.limt=0.1", "constraints.crash.limt: unknown key; known are limit"),
        ("+constraints.crash.limit=abc", "constraints.crash.limit: must be a number"),
        ("+constraints.crash={}", "constraints.crash.limit: it is missing; add +constraints.crash.limit=<value>"),
        ("constraints.termination.limit=null", "constraints.termination.limit: must be a number"),
        ("+constraints.crash=0.1", "constraints.crash: must be set key by key: constraints.crash.<key>=<value>"),
        ("+constraints=5", "+constraints: it is there already; leave the plus sign out"),
        ("constraints=null", "constraints=null: must be set key by key"),
        ("scenario.initial_std=abc", "scenario.initial_std=abc: must be a list such as"),
        ("start_spread=x", "start_spread=x: must be a whole number, or null"),
        ("~algo.lr", "~algo.lr: it cannot be taken away; set another value"),
        ("algo.lr=${x}", "${x} names no key"),
    ],
)
def test_what_omegaconf_refuses_is_told_in_our_words(override: str, words: str) -> None:
    with pytest.raises(UserError) as refused:
        compose(["+scenario=intersection", override])
    assert words in str(refused.value)
    assert not re.search("Config|Type|Optional|full_key", str(refused.value))
