"""run_action.py ROOM TEMP BRANCH REF COMMAND: runs the steps of ROOM/action.yml that have a script, as GitHub does."""
import os
import re
import subprocess
import sys

import yaml

room, temp, branch, ref, command = sys.argv[1:]
action = yaml.safe_load(open(os.path.join(room, "action.yml")))
values = {"inputs." + name: each.get("default", command) for name, each in action["inputs"].items()}
values.update({"inputs.base-branch": "main", "inputs.token": "secret"})
output = os.path.abspath("output")
variables = dict(os.environ, GITHUB_ACTION_PATH=room, RUNNER_TEMP=os.path.abspath(temp), GITHUB_REF_NAME=branch,
                 GITHUB_REF=ref, GITHUB_REPOSITORY="me/it", GITHUB_WORKFLOW="CI", GITHUB_OUTPUT=output,
                 GITHUB_STEP_SUMMARY=os.path.abspath("summary"))
for step in action["runs"]["steps"]:
    if "run" not in step:
        continue
    assert step["shell"] == "bash"
    filled = {name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values[found[1]], text) for name, text in step.get("env", {}).items()}
    open(output, "w").close()
    status = subprocess.call(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], env={**variables, **filled})
    for line in open(output):
        values[f"steps.{step['id']}.outputs.{line.split('=')[0]}"] = line.split("=")[1].strip()
    if status != 0:
        sys.exit(status)
