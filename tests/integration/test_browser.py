"""What people see, in a real browser: the pools page, a job's log, the report inside Airflow."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.integration.stack import Stack, running, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("chromium"), reason="needs Debian's chromium (tests/install_packages brings it)"
    ),
]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Where to keep the pictures, to look at or to put into docs/images; a folder of the test otherwise.
PICTURES = os.environ.get("GPUPOOL_TEST_PICTURES")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, str]]:
    """A fresh installation with the shipped pool file and DAGs, after its first loop has run by itself."""
    folder = tmp_path_factory.mktemp("fresh")
    with running(folder / "home", ROOT / "include/pool.yaml", ROOT / "dags") as stack:
        (run,) = wait_for("the first loop", lambda: runs(stack, "example_first_loop"), timeout_s=90)
        tasks = stack.finish("example_first_loop", run, timeout_s=400)
        assert {ti["state"] for ti in tasks} == {"success"}
        yield stack, runs(stack, "example_nlp_training")[0]


def runs(stack: Stack, dag_id: str) -> list[str]:
    answer = stack.api.get(f"/api/v2/dags/{dag_id}/dagRuns")
    return [run["dag_run_id"] for run in answer.json()["dag_runs"]] if answer.is_success else []


@pytest.fixture(scope="module")
def page(fresh: tuple[Stack, str], tmp_path_factory: pytest.TempPathFactory):
    from playwright.sync_api import sync_playwright

    stack, _ = fresh
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(stack.url)
        page.fill("input[name=username]", "admin")
        page.fill("input[name=password]", stack.password)
        page.keyboard.press("Enter")
        page.wait_for_url("**/")
        yield page
        browser.close()


@pytest.fixture
def picture(page, tmp_path: Path):
    def take(name: str) -> None:
        folder = Path(PICTURES or tmp_path)
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / f"{name}.png")

    return take


def test_the_queues_are_on_the_pools_page(fresh, page, picture):
    stack, _ = fresh
    page.goto(f"{stack.url}/pools")
    page.get_by_text("nlp-training.cpu").first.wait_for(timeout=30_000)
    page.get_by_text("gpupool: team vision, batch; nominal 1 x cpu, priority 100.").first.wait_for()
    picture("pools")


def test_who_waits_and_why_stands_in_airflow(fresh, page, picture):
    stack, _ = fresh
    command = {"command": "sleep 120", "devices": 1}
    started = [stack.start("submit__vision-batch", **command) for _ in range(2)]
    tasks = f"{stack.url}/dags/submit__vision-batch/runs/{{}}/tasks/run/plugin/gpu-job"
    waiting = wait_for(
        "one to wait", lambda: [r for r in started if stack.tasks("submit__vision-batch", r)[0]["state"] == "scheduled"]
    )
    page.goto(f"{stack.url}/plugin/gpu-queues")
    sentence = "It needs 1 cpu; 0 of the 1 of queue vision-batch are free, 1 more must end. Held by submit__vision-batch.run (1)."
    page.frame_locator("iframe").get_by_text(sentence).wait_for(timeout=30_000)
    picture("queues")
    page.goto(tasks.format(waiting[0]))
    page.frame_locator("iframe").get_by_text(sentence).wait_for(timeout=30_000)
    picture("job-waits")
    for run in started:
        stack.api.patch(f"/api/v2/dags/submit__vision-batch/dagRuns/{run}", json={"state": "failed"}).raise_for_status()


def test_the_job_tells_its_devices_its_progress_and_its_outcome(fresh, page, picture):
    stack, run = fresh
    page.goto(f"{stack.url}/dags/example_nlp_training/runs/{run}/tasks/train")
    page.get_by_text("Leased CPU-").first.wait_for(timeout=30_000)
    page.get_by_text("Outcome succeeded").first.wait_for()
    picture("job-log")


def test_the_report_stands_in_airflows_menu_and_names_real_figures(fresh, page, picture):
    stack, _ = fresh
    page.goto(f"{stack.url}/plugin/gpu-report")
    frame = page.frame_locator("iframe")
    frame.get_by_text("Capacity and use").wait_for(timeout=30_000)
    text = frame.locator("body").inner_text()
    assert "allocated:" in text
    assert "nlp-training" in text
    for figure in ("device utilization (of allocated time)", "coverage (measured / schedulable time)"):
        value = frame.locator(f"dt:has-text('{figure}') + dd").first.inner_text()
        assert value.endswith("%"), figure
        assert float(value.split()[0]) > 0
    picture("report-in-airflow")
    page.goto(f"{stack.url}/gpupool/report")
    page.set_viewport_size({"width": 1000, "height": 1250})
    picture("report")


def test_the_form_can_be_filled_in(fresh, page, picture):
    stack, _ = fresh
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{stack.url}/dags/submit__vision-batch")
    page.get_by_role("button", name="Trigger").first.click()
    page.get_by_text("Run by bash.").first.wait_for(timeout=30_000)
    page.get_by_text("How many devices.").first.wait_for()
    picture("form")
