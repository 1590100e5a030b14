/** Archives of images with one layer, as `ctr images import` reads them (OCI Image Layout, version 1). */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../setup.mjs";

const TYPE = "application/vnd.oci.image";

/** Writes the archive `file` of the image `name:tag`, whose files are those of the directory `files`. */
export function writeImage(file, { name, tag, files, entrypoint, user, directory }) {
  const layout = `${file}.layout`;
  const blobs = join(layout, "blobs", "sha256");
  mkdirSync(blobs, { recursive: true });
  try {
    const layerFile = join(layout, "layer");
    run("tar", ["--numeric-owner", "--owner=0", "--group=0", "-C", files, "-cf", layerFile, "."]);
    const layer = describe(`${TYPE}.layer.v1.tar`, readFileSync(layerFile));
    renameSync(layerFile, join(blobs, digits(layer)));
    const config = writeBlob(blobs, `${TYPE}.config.v1+json`, {
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: {
        Env: ["PATH=/usr/local/bin:/usr/bin:/bin"],
        Entrypoint: entrypoint,
        User: user,
        WorkingDir: directory,
      },
      rootfs: { type: "layers", diff_ids: [layer.digest] },
    });
    const manifest = { schemaVersion: 2, mediaType: `${TYPE}.manifest.v1+json`, config, layers: [layer] };
    const annotations = {
      "io.containerd.image.name": `${name}:${tag}`,
      "org.opencontainers.image.ref.name": tag,
    };
    const written = { ...writeBlob(blobs, manifest.mediaType, manifest), annotations };
    writeJson(join(layout, "index.json"), { schemaVersion: 2, manifests: [written] });
    writeJson(join(layout, "oci-layout"), { imageLayoutVersion: "1.0.0" });
    run("tar", ["-C", layout, "-cf", file, "oci-layout", "index.json", "blobs"]);
  } finally {
    rmSync(layout, { recursive: true, force: true });
  }
  return file;
}

function writeBlob(blobs, mediaType, value) {
  const bytes = Buffer.from(JSON.stringify(value));
  const descriptor = describe(mediaType, bytes);
  writeFileSync(join(blobs, digits(descriptor)), bytes);
  return descriptor;
}

function describe(mediaType, bytes) {
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  return { mediaType, digest, size: bytes.length };
}

const digits = ({ digest }) => digest.slice("sha256:".length);

function writeJson(file, value) {
  writeFileSync(file, JSON.stringify(value));
}
