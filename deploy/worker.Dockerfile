# The image of a worker's pod (docs/pods.md): Python, and Quern's launcher and runtime. Build it in a checkout:
#   docker build -f deploy/worker.Dockerfile -t quern-worker:0.1.0 .
# A predictor that needs system libraries, or another Python, has an image of its own:
#   FROM quern-worker:0.1.0
#   USER root
#   RUN apt-get update && apt-get install -y --no-install-recommends libgomp1
#   USER 1000:1000
FROM python:3.12-slim-bookworm
COPY python/quern_runtime /opt/quern/quern_runtime
COPY python/quern_launcher /opt/quern/quern_launcher
# Compiled here, because the root file system of a pod is read-only.
RUN python3 -m compileall -q /opt/quern
USER 1000:1000
WORKDIR /opt/quern
# The worker's protocol, and health.
EXPOSE 8421 8422
# The launcher reaps processes that a predictor left behind, so that no other first process is needed.
CMD ["python3", "-m", "quern_launcher"]
