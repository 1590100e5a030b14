/**
 * Output of pip and uv for requirements that cannot be installed, and the sentence made from it. The outputs are real
 * and shortened.
 */
import { expect, it } from "vitest";
import { explainInstallFailure } from "../../../src/engine/environments/install-failure.ts";

const CURE =
  "; require another version of it, or use predictor.python to choose a Python that it has builds for";
const PIP_23_SOURCE = `Looking in links: /opt/wheels
Collecting numpy>=1.11 (from -r a.txt (line 1))
Collecting scikit-learn==0.21.3 (from -r a.txt (line 2))
  Downloading scikit-learn-0.21.3.tar.gz (12.2 MB)
  Getting requirements to build wheel: finished with status 'error'
  error: subprocess-exited-with-error

  × Getting requirements to build wheel did not run successfully.
  │ exit code: 1
      ModuleNotFoundError: No module named 'pkg_resources'
      [end of output]
error: subprocess-exited-with-error

× Getting requirements to build wheel did not run successfully.
╰─> See above for output.
`;
const PIP_26_SOURCE = `Collecting scikit_learn==0.21.3 (from -r a.txt (line 1))
ERROR: Failed to build 'scikit-learn' when getting requirements to build wheel
`;
const PIP_DEPENDENCIES = `Collecting scipy==1.2.0 (from -r a.txt (line 1))
  × pip subprocess to install build dependencies did not run successfully.
  │ exit code: 1
      ERROR: No matching distribution found for numpy==1.13.3
`;
const PIP_WHEEL = `Collecting old[extra]<2 (from more->-r a.txt (line 1))
  ERROR: Failed building wheel for old
Failed to build old
ERROR: Could not build wheels for old, which is required to install pyproject.toml-based projects
`;
const PIP_LOCAL = `Processing ./lib
  ERROR: Failed building wheel for broken-quern
`;
const UV_SOURCE = `Resolved 5 packages in 1.40s
error: Failed to build \`scikit-learn==0.21.3\`
  cause: The build backend returned an error
`;
const UV_LOCAL = "error: Failed to build `broken-quern @ file:///project/lib`\n";
const PIP_NOTHING = `ERROR: Could not find a version that satisfies the requirement tensorflow==1.15 (from versions: 2.12.0rc0, 2.12.0)
ERROR: No matching distribution found for tensorflow==1.15
`;
const UV_NOTHING = `error: No solution found when resolving dependencies
  cause: Because tensorflow==1.15.0 has no wheels with a matching Python ABI tag (e.g., \`cp311\`) and you require tensorflow==1.15, we can conclude that your requirements are unsatisfiable.
`;
const UV_TOO_NEW = `  ╰─▶ Because the current Python version (3.11.7) does not satisfy Python>=3.7,<3.11
      and numba==0.53.0 depends on Python>=3.7,<3.11, we can conclude that numba==0.53.0 cannot be used.
      And because you require numba==0.53.0, we can conclude that your requirements are unsatisfiable.
`;
const NO_INDEX = `WARNING: Retrying (Retry(total=0, connect=None, read=None)) after connection broken by 'NewConnectionError'
ERROR: No matching distribution found for numpy==1.26
`;

it.each<[string, string, string | undefined]>([
  [
    "pip, from source",
    PIP_23_SOURCE,
    "scikit-learn==0.21.3 has no build for Python 3.11, and building it from source failed",
  ],
  ["pip, from source, in later words", PIP_26_SOURCE, "scikit_learn==0.21.3 has no build"],
  ["pip, what the build needs", PIP_DEPENDENCIES, "scipy==1.2.0 has no build"],
  ["pip, at the wheel", PIP_WHEEL, "old[extra]<2 has no build"],
  ["uv, from source", UV_SOURCE, "scikit-learn==0.21.3 has no build"],
  ["pip, no build", PIP_NOTHING, "there is no tensorflow==1.15 for Python 3.11"],
  ["uv, no build", UV_NOTHING, "there is no tensorflow==1.15.0 for Python 3.11"],
  ["uv, not for this Python", UV_TOO_NEW, "there is no numba==0.53.0 for Python 3.11"],
])("%s", (_, output, words) => {
  const sentence = explainInstallFailure(output, "3.11")!;
  expect(sentence).toContain(words);
  expect(sentence.endsWith(CURE)).toBe(true);
});

it("a failing package of the project gets the advice to correct it", () => {
  for (const output of [PIP_LOCAL, UV_LOCAL])
    expect(explainInstallFailure(output, "3.11")).toMatch(
      /^building broken-quern( @ \S+)? for Python 3\.11 failed; correct it, or choose another Python with predictor\.python$/,
    );
});

it("an unreachable index is reported as such, and an unknown failure gets no advice", () => {
  expect(explainInstallFailure(NO_INDEX, "3.11")).toContain("the package index does not respond");
  expect(explainInstallFailure("ERROR: Invalid requirement: '=='\n", "3.11")).toBeUndefined();
  expect(explainInstallFailure("ERROR: ResolutionImpossible: for help visit\n", "3.11")).toBeUndefined();
});
