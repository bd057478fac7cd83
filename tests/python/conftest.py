"""The installed package and its program, with the bundled checkpoint of the source tree."""

import json
import os
import pathlib
import subprocess
import sysconfig

import pytest

import foresay

MODEL = str(pathlib.Path(os.environ["FORESAY_MODELS"]) / "tiny-qwen3_5")
PROMPT = "def read_config(path):"


@pytest.fixture(scope="session")
def model():
    return foresay.load(MODEL, threads=2)


@pytest.fixture(scope="session")
def program():
    """Runs the installed program's `generate`; its JSON document."""

    def run(*arguments):
        path = pathlib.Path(sysconfig.get_path("scripts")) / "foresay"
        out = subprocess.run([path, "generate", *arguments, "--json"], check=True, capture_output=True, text=True)
        return json.loads(out.stdout)

    return run
