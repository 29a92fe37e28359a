"""Package metadata. conf/ and runners/ are reached as maip3o.conf and maip3o.runners through links in maip3o/."""

from pathlib import Path

from setuptools import find_packages, setup

EXTRAS = {
    "mujoco": ["mujoco>=3.3,<4", "imageio>=2.14"],
    "safety": ["mujoco>=3.3,<4", "pyyaml>=6", "xmltodict>=0.13"],  # and requirements-nodeps.txt
    "bullet": ["pybullet==3.2.7"],  # likewise
    "ray": ["ray>=2.40"],
    "export": ["onnx>=1.16", "onnxruntime>=1.18"],
    "tune": ["optuna>=4"],
    "slurm": ["submitit>=1.5"],
    "wandb": ["wandb>=0.17"],
}
DEV = [
    "hypothesis",
    "mypy",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "rliable>=1.2",
    "ruff",
    "types-psutil",
    "types-PyYAML",
]

IN_DEV = ("ray", "export", "tune", "slurm", "mujoco", "safety", "bullet")

setup(
    name="maip3o",
    version="0.1.0",
    description="Safe multi-agent reinforcement learning in driving: MAIP3O, MAP3O and MAPPO on MetaDrive",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10,<3.12",
    packages=find_packages(include=["maip3o", "maip3o.*"]),
    package_data={
        "maip3o": [
            "policies/*.pt",
            "report/*.html",
            "report/*.css",
            "video/*.html",
            "video/*.js",
            "video/*.css",
            "py.typed",
        ],
        "maip3o.conf": ["*.yaml", "*/*.yaml", "*/*/*.yaml"],
        "maip3o.runners": ["*.sh"],
    },
    install_requires=[
        "torch>=2.4",
        "metadrive-simulator==0.4.3",
        "gymnasium>=0.29",
        "numpy>=1.26",
        "hydra-core>=1.3",
        "jinja2>=3.1",
        "tensorboard>=2.15",
        "pettingzoo>=1.24",
        "numba>=0.59",
        "scipy>=1.10",
        "imageio-ffmpeg>=0.5",
        "opencv-python>=4.8",
        "matplotlib>=3.8",
        "rich>=13",
        "loky>=3.4",
        "psutil>=5.9",
    ],
    extras_require={**EXTRAS, "dev": [*DEV, *(package for name in IN_DEV for package in EXTRAS[name])]},
    classifiers=[
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
