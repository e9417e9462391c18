# vLLM with the evaluator beside it, in a virtual environment of its own: none of vLLM's packages
# is touched. To pin the base by digest:
#   docker build --build-arg BASE_IMAGE=vllm/vllm-openai@sha256:… .
# Plain instructions only, which every builder of the last years takes: a runner may use any.
ARG BASE_IMAGE=vllm/vllm-openai:v0.33.0

FROM ${BASE_IMAGE} AS build
WORKDIR /build
COPY requirements/build.txt requirements/image.txt ./
RUN python3 -m venv --without-pip /opt/mrcr \
 && python3 -m venv --without-pip /opt/build \
 && python3 -m pip --python /opt/mrcr/bin/python install --no-cache-dir --require-hashes -r image.txt \
 && python3 -m pip --python /opt/build/bin/python install --no-cache-dir --require-hashes -r build.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python3 -m pip --python /opt/build/bin/python wheel --no-cache-dir --no-deps --no-build-isolation -w dist . \
 && python3 -m pip --python /opt/mrcr/bin/python install --no-cache-dir --no-deps dist/*.whl \
 && /opt/mrcr/bin/mrcr probe --build /opt/mrcr/share/mrcr-probe

FROM ${BASE_IMAGE}
ARG VERSION=development
ARG REVISION=unknown
LABEL org.opencontainers.image.title="mrcr-action" \
      org.opencontainers.image.description="A gate for long-context serving: MRCR against vLLM" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/mrcr /opt/mrcr
COPY entrypoint /entrypoint
# The environment as it is here, since a job's steps may have put the runner's own over it.
RUN chmod 0755 /entrypoint \
 && ln -s /entrypoint /post-entrypoint \
 && ln -s /opt/mrcr/bin/mrcr /usr/local/bin/mrcr \
 && printf '%s\n' "PATH=${PATH}" "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}" "HOME=/root" \
    > /opt/mrcr/environment
# A container action runs as root: it has to read the runner's files and to write to the workspace.
ENTRYPOINT ["/entrypoint"]
