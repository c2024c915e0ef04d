"""A second Hudi in Spark: a run and `lockstep validate` name both before there is a table."""

from __future__ import annotations

import zipfile

import pytest

from lockstep.errors import EXIT_WELL
from table.hudi.driver.versions import CLASS_FILE, POM
from tests.harness import Pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


@pytest.mark.parametrize("version", ["1.0.2", "1.2.0"])
def test_another_hudi_in_spark_is_refused_before_a_table_is_created(pipeline: Pipeline, version: str) -> None:
    """As in a cloud's image, which has one in Spark's own jars. Two of the same version are no trouble."""
    jar = pipeline.folder / f"hudi-spark3.5-bundle_2.12-{version}.jar"
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr(CLASS_FILE, b"never loaded: behind the one that Lockstep brings")
        file.writestr(POM, f"artifactId=hudi-common\nversion={version}\n")
    pipeline.produce(100)
    conf = ("--conf", f"spark.driver.extraClassPath={jar}")
    validated = pipeline.command("validate", *conf, deadline_s=300)
    run = pipeline.run_to_end(*conf)
    if version == "1.2.0":
        assert run.process.returncode == EXIT_WELL and validated.returncode == EXIT_WELL, run.text()
        return
    assert run.process.returncode != EXIT_WELL and not pipeline.table.exists()
    for said in (run.text(), validated.stdout + validated.stderr):
        told = " ".join(said.split())
        assert "several versions of Hudi on its class path: 1.2.0 in " in told
        assert f"{version} in {jar}" in told


def test_a_limit_of_the_workers_address_space_is_refused(pipeline: Pipeline) -> None:
    pipeline.produce(100)
    run = pipeline.run_to_end("--conf", "spark.executor.pyspark.memory=1g")
    assert run.process.returncode != EXIT_WELL and not pipeline.table.exists()
    assert "spark.executor.pyspark.memory = 1g limits the address space of Python workers" in run.text()
